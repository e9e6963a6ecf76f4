//! What every function shares: brackets, directions, and statuses as errors.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_int;

use crate::native;

/// `lower <= exact value <= upper`; `upper` may be infinite.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub lower: f64,
    /// The certified value: what to state.
    pub upper: f64,
}

/// Which of two neighbouring data sets the privacy loss is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the record against without.
    Remove = 0,
    /// Without against with.
    Add = 1,
    /// The larger one: differential privacy under add-or-remove.
    Either = 2,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument is outside its domain.
    Domain,
    /// There is no memory for the workspace.
    Memory,
    /// No certified answer was reached at any width; please report the arguments.
    Precision,
    /// Every value meets the target of a calibration, so that no best one exists.
    Unbounded,
}

impl Error {
    fn status(self) -> c_int {
        match self {
            Error::Domain => -1,
            Error::Memory => -2,
            Error::Precision => -3,
            Error::Unbounded => -4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the library returns a constant string for every status.
        let text = unsafe { CStr::from_ptr(native::accountant_status_message(self.status())) };
        to.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// The error of a status.
pub(crate) fn checked(status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        -1 => Err(Error::Domain),
        -2 => Err(Error::Memory),
        -4 => Err(Error::Unbounded),
        _ => Err(Error::Precision),
    }
}

/// The bracket that a function writes.
pub(crate) fn bracket(ask: impl FnOnce(*mut Bounds) -> c_int) -> Result<Bounds> {
    let mut found = Bounds {
        lower: 0.0,
        upper: f64::INFINITY,
    };
    checked(ask(&mut found))?;
    Ok(found)
}

/// The number that a function writes.
pub(crate) fn number(ask: impl FnOnce(*mut f64) -> c_int) -> Result<f64> {
    let mut found = f64::NAN;
    checked(ask(&mut found))?;
    Ok(found)
}

/// A count as the double that the library takes; beyond 2^53 not every count is one.
pub(crate) fn count(steps: u64) -> Result<f64> {
    if steps <= 1 << 53 {
        Ok(steps as f64)
    } else {
        Err(Error::Domain)
    }
}
