//! Certified differential-privacy accounting of Gaussian noise on Poisson samples (DP-SGD).
//!
//! ```
//! use accountant::{calibrate_sigma, epsilon_bounds, Direction};
//!
//! let sigma = calibrate_sigma(3.0, 1e-5, 0.01, 1000)?;
//! let epsilon = epsilon_bounds(0.01, sigma, 1000, 1e-5, Direction::Either)?;
//! assert!(epsilon.upper <= 3.0);
//! # Ok::<(), accountant::Error>(())
//! ```
//!
//! A record is drawn with probability `q` and shifts the noise of a step by 1; `sigma` is the noise multiplier.
//! Neighbouring data sets differ in one record that is there or not. ε and Rényi divergences are in
//! nats. Brackets hold the exact value, round-off included: state their upper ends.
//!
//! Domains: `q` in \[0, 1\]; `sigma` > 0; `steps` at most 2^53; `epsilon` >= 0 and finite; `delta` in (0, 1);
//! `order` > 1 and finite. Anything else is [`Error::Domain`]. All functions may be called from any thread.

#![warn(missing_debug_implementations)]

mod answers;
mod compositions;
mod native;

use std::ffi::CStr;

use answers::{bracket, count, number};
pub use answers::{Bounds, Direction, Error, Result};
pub use compositions::{
    composition_delta_bounds, composition_epsilon_bounds, mixture_delta_bounds, mixture_epsilon_bounds,
    Part, Shifts,
};

// The functions below write through a pointer to a local variable, and read nothing but their arguments: that is
// all that their `unsafe` needs.

/// The release of the library.
pub fn version() -> String {
    // SAFETY: the library returns a constant string.
    unsafe { CStr::from_ptr(native::accountant_version()) }
        .to_string_lossy()
        .into_owned()
}

/// Brackets ε(delta), the least ε for which `steps` steps are (ε, delta)-differentially private.
pub fn epsilon_bounds(q: f64, sigma: f64, steps: u64, delta: f64, direction: Direction) -> Result<Bounds> {
    let steps = count(steps)?;
    bracket(|out| unsafe { native::accountant_epsilon_bounds(q, sigma, steps, delta, direction as i32, out) })
}

/// Brackets the privacy profile δ(epsilon) of `steps` steps.
pub fn delta_bounds(q: f64, sigma: f64, steps: u64, epsilon: f64, direction: Direction) -> Result<Bounds> {
    let steps = count(steps)?;
    bracket(|out| unsafe { native::accountant_delta_bounds(q, sigma, steps, epsilon, direction as i32, out) })
}

/// Brackets the Rényi divergence of one step; that of n steps is n times it.
pub fn renyi_bounds(q: f64, sigma: f64, order: f64, direction: Direction) -> Result<Bounds> {
    bracket(|out| unsafe { native::accountant_renyi_bounds(q, sigma, order, direction as i32, out) })
}

/// Bounds ε(delta) by way of Rényi differential privacy: `(epsilon, order)`, at the best real order.
pub fn epsilon_renyi_upper(q: f64, sigma: f64, steps: u64, delta: f64) -> Result<(f64, f64)> {
    let steps = count(steps)?;
    let mut order = f64::NAN;
    let epsilon = number(|out| unsafe {
        native::accountant_epsilon_renyi_upper(q, sigma, steps, delta, out, &mut order)
    })?;
    Ok((epsilon, order))
}

/// Brackets ε(delta) of one release of Gaussian noise.
pub fn gaussian_epsilon_bounds(sigma: f64, delta: f64) -> Result<Bounds> {
    bracket(|out| unsafe { native::accountant_gaussian_epsilon_bounds(sigma, delta, out) })
}

/// Brackets δ(epsilon) of one release of Gaussian noise.
pub fn gaussian_delta_bounds(sigma: f64, epsilon: f64) -> Result<Bounds> {
    bracket(|out| unsafe { native::accountant_gaussian_delta_bounds(sigma, epsilon, out) })
}

/// The least noise multiplier for which ε(delta) is certified to be at most `target_epsilon`.
///
/// It was evaluated, and so was the next smaller double, which is too dear.
pub fn calibrate_sigma(target_epsilon: f64, delta: f64, q: f64, steps: u64) -> Result<f64> {
    let steps = count(steps)?;
    number(|out| unsafe { native::accountant_calibrate_sigma(target_epsilon, delta, q, steps, out) })
}

/// The largest number of steps for which ε(delta) is certified to be at most `target_epsilon`.
pub fn calibrate_steps(target_epsilon: f64, delta: f64, q: f64, sigma: f64) -> Result<u64> {
    number(|out| unsafe { native::accountant_calibrate_steps(target_epsilon, delta, q, sigma, out) })
        .map(|steps| steps as u64)
}

/// The largest sampling probability for which ε(delta) is certified to be at most `target_epsilon`.
pub fn calibrate_q(target_epsilon: f64, delta: f64, sigma: f64, steps: u64) -> Result<f64> {
    let steps = count(steps)?;
    number(|out| unsafe { native::accountant_calibrate_q(target_epsilon, delta, sigma, steps, out) })
}
