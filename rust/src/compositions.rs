//! Random shifts, and steps that differ.

use std::ptr;

use crate::answers::{bracket, count};
use crate::native::{self, Part as NativePart, Shifts as NativeShifts};
use crate::{Bounds, Direction, Error, Result};

/// A record shifts the noise by `shift[j]` with probability `weight[j]`, and else not at all.
///
/// A user with several records, for example. Shifts are positive and increasing, at most 256 of them; whether they are a law is
/// said by the functions that use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shifts<'a> {
    shift: &'a [f64],
    weight: &'a [f64],
    no_shift: f64,
    weight_error: f64,
}

impl<'a> Shifts<'a> {
    /// Exact weights, which leave at least 1e-9 of one for no shift.
    pub fn new(shift: &'a [f64], weight: &'a [f64]) -> Result<Self> {
        Self::rounded(shift, weight, 0.0, 0.0)
    }

    /// Weights with a relative error of at most `weight_error <= 1e-13`, and the weight of no shift.
    pub fn rounded(shift: &'a [f64], weight: &'a [f64], no_shift: f64, weight_error: f64) -> Result<Self> {
        if shift.len() != weight.len() {
            return Err(Error::Domain);
        }
        Ok(Self {
            shift,
            weight,
            no_shift,
            weight_error,
        })
    }

    fn native(&self) -> NativeShifts {
        NativeShifts {
            count: self.shift.len(),
            shift: self.shift.as_ptr(),
            weight: self.weight.as_ptr(),
            no_shift: self.no_shift,
            weight_error: self.weight_error,
        }
    }
}

/// Equal steps of a composition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    /// The sampling probability; with `shifts` it is not looked at.
    pub q: f64,
    pub sigma: f64,
    pub steps: u64,
    /// None: one shift, of 1.
    pub shifts: Option<Shifts<'a>>,
}

impl Part<'_> {
    /// Poisson-sampled Gaussian steps.
    pub fn new(q: f64, sigma: f64, steps: u64) -> Self {
        Self {
            q,
            sigma,
            steps,
            shifts: None,
        }
    }
}

/// Brackets ε(delta) of steps with a random shift.
pub fn mixture_epsilon_bounds(
    law: &Shifts<'_>,
    sigma: f64,
    steps: u64,
    delta: f64,
    direction: Direction,
) -> Result<Bounds> {
    let steps = count(steps)?;
    // SAFETY: the law points into slices that live as long as this call.
    bracket(|out| unsafe {
        native::accountant_mixture_epsilon_bounds(&law.native(), sigma, steps, delta, direction as i32, out)
    })
}

/// Brackets δ(epsilon) of steps with a random shift.
pub fn mixture_delta_bounds(
    law: &Shifts<'_>,
    sigma: f64,
    steps: u64,
    epsilon: f64,
    direction: Direction,
) -> Result<Bounds> {
    let steps = count(steps)?;
    // SAFETY: as above.
    bracket(|out| unsafe {
        native::accountant_mixture_delta_bounds(&law.native(), sigma, steps, epsilon, direction as i32, out)
    })
}

/// Calls `ask` with the parts as the library takes them.
fn with_parts(
    parts: &[Part<'_>],
    ask: impl FnOnce(*const NativePart, usize) -> Result<Bounds>,
) -> Result<Bounds> {
    let laws: Vec<Option<NativeShifts>> = parts
        .iter()
        .map(|part| part.shifts.as_ref().map(Shifts::native))
        .collect();
    let mut native = Vec::with_capacity(parts.len());
    for (part, law) in parts.iter().zip(&laws) {
        native.push(NativePart {
            q: part.q,
            sigma: part.sigma,
            steps: count(part.steps)?,
            shifts: law.as_ref().map_or(ptr::null(), |law| law),
        });
    }
    ask(native.as_ptr(), native.len())
}

/// Brackets ε(delta) of all parts, one after the other in any order.
pub fn composition_epsilon_bounds(parts: &[Part<'_>], delta: f64, direction: Direction) -> Result<Bounds> {
    with_parts(parts, |parts, count| {
        // SAFETY: `with_parts` keeps the parts and their laws during this call.
        bracket(|out| unsafe {
            native::accountant_composition_epsilon_bounds(parts, count, delta, direction as i32, out)
        })
    })
}

/// Brackets δ(epsilon) of all parts, one after the other in any order.
pub fn composition_delta_bounds(parts: &[Part<'_>], epsilon: f64, direction: Direction) -> Result<Bounds> {
    with_parts(parts, |parts, count| {
        // SAFETY: as above.
        bracket(|out| unsafe {
            native::accountant_composition_delta_bounds(parts, count, epsilon, direction as i32, out)
        })
    })
}
