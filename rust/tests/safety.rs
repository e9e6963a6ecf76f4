//! Errors, domains and threads.

use accountant::*;

#[test]
fn calibrated_values_meet_the_target_and_their_neighbours_do_not() {
    let spent = |q, sigma, steps| {
        epsilon_bounds(q, sigma, steps, 1e-5, Direction::Either)
            .unwrap()
            .upper
    };
    let sigma = calibrate_sigma(2.0, 1e-5, 0.01, 1000).unwrap();
    assert!(spent(0.01, sigma, 1000) <= 2.0);
    assert!(spent(0.01, f64::from_bits(sigma.to_bits() - 1), 1000) > 2.0);
    let steps = calibrate_steps(2.0, 1e-5, 0.01, 1.0).unwrap();
    assert!(spent(0.01, 1.0, steps) <= 2.0 && spent(0.01, 1.0, steps + 1) > 2.0);
    let q = calibrate_q(2.0, 1e-5, 1.0, 1000).unwrap();
    assert!(spent(q, 1.0, 1000) <= 2.0 && spent(f64::from_bits(q.to_bits() + 1), 1.0, 1000) > 2.0);
}

#[test]
fn impossible_arguments_are_errors() {
    let refused = |q, sigma, steps, delta| {
        epsilon_bounds(q, sigma, steps, delta, Direction::Either) == Err(Error::Domain)
    };
    assert!(refused(-0.1, 1.0, 1, 0.1));
    assert!(refused(0.1, f64::NAN, 1, 0.1));
    assert!(refused(0.1, 0.0, 1, 0.1));
    assert!(refused(0.1, 1.0, u64::MAX, 0.1));
    assert!(refused(0.1, 1.0, (1 << 53) + 1, 0.1));
    assert!(refused(0.1, 1.0, 1, 0.0));
    assert_eq!(calibrate_steps(1.0, 1e-5, 0.0, 1.0), Err(Error::Unbounded));
    assert_eq!(Shifts::new(&[1.0, 2.0], &[0.1]), Err(Error::Domain));
    let none = Shifts::new(&[], &[]).unwrap();
    let answer = mixture_epsilon_bounds(&none, 1.0, 1, 0.1, Direction::Either);
    assert_eq!(answer, Err(Error::Domain));
    assert_eq!(Error::Domain.to_string(), "an argument is outside its domain");
}

#[test]
fn a_composition_of_one_part_is_that_part() {
    let part = [Part::new(0.01, 1.0, 100)];
    let alone = epsilon_bounds(0.01, 1.0, 100, 1e-5, Direction::Remove);
    assert_eq!(composition_epsilon_bounds(&part, 1e-5, Direction::Remove), alone);
    let nothing = composition_delta_bounds(&[], 1.0, Direction::Either).unwrap();
    assert_eq!(nothing.upper, 0.0);
}

#[test]
fn threads_get_the_same_answers() {
    let ask = |i: u64| epsilon_bounds(0.01, 1.0, 100 * (1 + i), 1e-5, Direction::Either);
    let alone: Vec<_> = (0..8).map(ask).collect();
    let handles: Vec<_> = (0..8).map(|i| std::thread::spawn(move || ask(i))).collect();
    let together: Vec<_> = handles.into_iter().map(|h| h.join().unwrap()).collect();
    assert_eq!(alone, together);
}

#[test]
fn the_library_is_the_release_of_the_crate() {
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}
