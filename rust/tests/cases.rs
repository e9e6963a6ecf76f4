//! The questions that every language is asked: bit for bit those of ACCOUNTANT_CASES, which
//! libaccountant/tests/make_cases.py writes; without it the stored ones, whose brackets must overlap.

use accountant::*;
use std::{env, fs};

const DIRECTIONS: [Direction; 3] = [Direction::Remove, Direction::Add, Direction::Either];
const ERRORS: [Error; 4] = [Error::Domain, Error::Memory, Error::Precision, Error::Unbounded];

/// A hexadecimal double as C's %a writes it, or what Rust reads itself.
fn number(word: &str) -> f64 {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, word),
    };
    let Some(hexadecimal) = rest.strip_prefix("0x") else {
        return word.parse().unwrap();
    };
    let (digits, exponent) = hexadecimal.split_once('p').unwrap();
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let bits = u64::from_str_radix(&format!("{whole}{part}"), 16).unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - 4 * part.len() as i32;
    // At most 53 bits: the first factor is exact, and so is the product, or it is rounded once.
    let half = exponent / 2;
    sign * (bits as f64 * 2f64.powi(half)) * 2f64.powi(exponent - half)
}

/// The numbers of a line, taken one after the other.
struct Numbers<'a>(&'a [f64]);

impl<'a> Numbers<'a> {
    fn next(&mut self) -> f64 {
        self.slice(1)[0]
    }
    fn slice(&mut self, count: usize) -> &'a [f64] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }
    fn count(&mut self) -> u64 {
        self.next() as u64
    }
    fn direction(&mut self) -> Direction {
        DIRECTIONS[self.count() as usize]
    }
    fn law(&mut self, count: u64) -> Shifts<'a> {
        let (no_shift, weight_error) = (self.next(), self.next());
        let (shift, weight) = (self.slice(count as usize), self.slice(count as usize));
        Shifts::rounded(shift, weight, no_shift, weight_error).unwrap()
    }
    fn parts(&mut self) -> Vec<Part<'a>> {
        (0..self.count())
            .map(|_| {
                let mut part = Part::new(self.next(), self.next(), self.count());
                let count = self.count();
                if count > 0 {
                    part.shifts = Some(self.law(count));
                }
                part
            })
            .collect()
    }
}

fn pair(found: Result<Bounds>) -> Result<Vec<f64>> {
    found.map(|b| vec![b.lower, b.upper])
}

fn one(found: Result<f64>) -> Result<Vec<f64>> {
    found.map(|x| vec![x])
}

fn of_law(name: &str, x: &mut Numbers) -> Result<Vec<f64>> {
    let sigma = x.next();
    let (steps, given, direction, count) = (x.count(), x.next(), x.direction(), x.count());
    let law = x.law(count);
    pair(match name {
        "epsilon" => mixture_epsilon_bounds(&law, sigma, steps, given, direction),
        _ => mixture_delta_bounds(&law, sigma, steps, given, direction),
    })
}

fn ask(name: &str, x: &mut Numbers) -> Result<Vec<f64>> {
    match name {
        "epsilon_bounds" => pair(epsilon_bounds(
            x.next(),
            x.next(),
            x.count(),
            x.next(),
            x.direction(),
        )),
        "delta_bounds" => pair(delta_bounds(
            x.next(),
            x.next(),
            x.count(),
            x.next(),
            x.direction(),
        )),
        "renyi_bounds" => pair(renyi_bounds(x.next(), x.next(), x.next(), x.direction())),
        "epsilon_renyi_upper" => {
            epsilon_renyi_upper(x.next(), x.next(), x.count(), x.next()).map(|(e, o)| vec![e, o])
        }
        "gaussian_epsilon_bounds" => pair(gaussian_epsilon_bounds(x.next(), x.next())),
        "gaussian_delta_bounds" => pair(gaussian_delta_bounds(x.next(), x.next())),
        "mixture_epsilon_bounds" => of_law("epsilon", x),
        "mixture_delta_bounds" => of_law("delta", x),
        "composition_epsilon_bounds" => {
            let (delta, direction) = (x.next(), x.direction());
            pair(composition_epsilon_bounds(&x.parts(), delta, direction))
        }
        "composition_delta_bounds" => {
            let (epsilon, direction) = (x.next(), x.direction());
            pair(composition_delta_bounds(&x.parts(), epsilon, direction))
        }
        "calibrate_sigma" => one(calibrate_sigma(x.next(), x.next(), x.next(), x.count())),
        "calibrate_steps" => one(calibrate_steps(x.next(), x.next(), x.next(), x.next()).map(|n| n as f64)),
        "calibrate_q" => one(calibrate_q(x.next(), x.next(), x.next(), x.count())),
        _ => panic!("no function {name}"),
    }
}

fn agrees(found: &Result<Vec<f64>>, status: i32, expected: &[f64], exact: bool, name: &str) -> bool {
    match found {
        Err(error) => ERRORS.iter().position(|e| e == error).unwrap() as i32 == -1 - status,
        Ok(_) if status != 0 => false,
        Ok(x) if exact => x
            .iter()
            .map(|v| v.to_bits())
            .eq(expected.iter().map(|v| v.to_bits())),
        Ok(x) if name.ends_with("_bounds") => x[0] <= expected[1] && expected[0] <= x[1],
        Ok(x) => {
            let off = (x[0] - expected[0]).abs();
            x[0] == expected[0] || off <= (1e-6 * expected[0]).max(if x[0] >= 1.0 { 1.0 } else { 0.0 })
        }
    }
}

#[test]
fn the_answers_are_those_of_every_language() {
    let given = env::var("ACCOUNTANT_CASES").ok();
    let exact = given.is_some();
    let path = given.unwrap_or_else(|| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../libaccountant/tests/cases.txt").to_string()
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let (mut asked, mut differ) = (0, 0);
    for line in lines {
        let (question, answer) = line.split_once(" = ").unwrap();
        let mut words = question.split(' ');
        let name = words.next().unwrap();
        let arguments: Vec<f64> = words.map(number).collect();
        let expected: Vec<f64> = answer.split(' ').map(number).collect();
        let mut rest = Numbers(&arguments);
        let found = ask(name, &mut rest);
        assert!(rest.0.is_empty(), "arguments are left: {line}");
        asked += 1;
        if !agrees(&found, expected[0] as i32, &expected[1..], exact, name) {
            differ += 1;
            eprintln!("{line}\n    {found:?}");
        }
    }
    println!("cases: {asked} answers, {differ} of them different");
    assert!(asked > 0 && differ == 0);
}

#[test]
fn hexadecimal_doubles_are_read_exactly() {
    for (word, value) in [
        ("0x1.8p+1", 3.0),
        ("-0x1.921fb54442d18p+1", -std::f64::consts::PI),
        ("0x1.fffffffffffffp+1023", f64::MAX),
        ("0x1p-1022", f64::MIN_POSITIVE),
        ("0x0.0000000000001p-1022", f64::from_bits(1)),
        ("0x0.0p+0", 0.0),
        ("1000", 1000.0),
        ("inf", f64::INFINITY),
    ] {
        assert_eq!(number(word).to_bits(), f64::to_bits(value), "{word}");
    }
}
