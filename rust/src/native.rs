//! The functions of `accountant.h`.

use std::os::raw::{c_char, c_int};

use crate::Bounds;

#[repr(C)]
pub struct Shifts {
    pub count: usize,
    pub shift: *const f64,
    pub weight: *const f64,
    pub no_shift: f64,
    pub weight_error: f64,
}

#[repr(C)]
pub struct Part {
    pub q: f64,
    pub sigma: f64,
    pub steps: f64,
    pub shifts: *const Shifts,
}

extern "C" {
    pub fn accountant_version() -> *const c_char;
    pub fn accountant_status_message(status: c_int) -> *const c_char;
    pub fn accountant_epsilon_bounds(
        q: f64,
        sigma: f64,
        steps: f64,
        delta: f64,
        direction: c_int,
        epsilon: *mut Bounds,
    ) -> c_int;
    pub fn accountant_delta_bounds(
        q: f64,
        sigma: f64,
        steps: f64,
        epsilon: f64,
        direction: c_int,
        delta: *mut Bounds,
    ) -> c_int;
    pub fn accountant_renyi_bounds(
        q: f64,
        sigma: f64,
        order: f64,
        direction: c_int,
        divergence: *mut Bounds,
    ) -> c_int;
    pub fn accountant_epsilon_renyi_upper(
        q: f64,
        sigma: f64,
        steps: f64,
        delta: f64,
        epsilon: *mut f64,
        order: *mut f64,
    ) -> c_int;
    pub fn accountant_gaussian_epsilon_bounds(sigma: f64, delta: f64, epsilon: *mut Bounds) -> c_int;
    pub fn accountant_gaussian_delta_bounds(sigma: f64, epsilon: f64, delta: *mut Bounds) -> c_int;
    pub fn accountant_mixture_epsilon_bounds(
        law: *const Shifts,
        sigma: f64,
        steps: f64,
        delta: f64,
        direction: c_int,
        epsilon: *mut Bounds,
    ) -> c_int;
    pub fn accountant_mixture_delta_bounds(
        law: *const Shifts,
        sigma: f64,
        steps: f64,
        epsilon: f64,
        direction: c_int,
        delta: *mut Bounds,
    ) -> c_int;
    pub fn accountant_composition_epsilon_bounds(
        parts: *const Part,
        count: usize,
        delta: f64,
        direction: c_int,
        epsilon: *mut Bounds,
    ) -> c_int;
    pub fn accountant_composition_delta_bounds(
        parts: *const Part,
        count: usize,
        epsilon: f64,
        direction: c_int,
        delta: *mut Bounds,
    ) -> c_int;
    pub fn accountant_calibrate_sigma(
        target_epsilon: f64,
        delta: f64,
        q: f64,
        steps: f64,
        sigma: *mut f64,
    ) -> c_int;
    pub fn accountant_calibrate_steps(
        target_epsilon: f64,
        delta: f64,
        q: f64,
        sigma: f64,
        steps: *mut f64,
    ) -> c_int;
    pub fn accountant_calibrate_q(
        target_epsilon: f64,
        delta: f64,
        sigma: f64,
        steps: f64,
        q: *mut f64,
    ) -> c_int;
}
