# Conditions, recycling, and the examples' answers beside each other.
library(accountant)

sigma <- calibrate_sigma(3, 1e-5, q = 0.01, steps = 1000)
stopifnot(get_epsilon(0.01, sigma, 1000) <= 3, get_epsilon(0.01, sigma * (1 - 1e-12), 1000) > 3)

both <- epsilon_bounds(0.01, c(1, 2), 1000, 1e-5)
stopifnot(
  identical(dim(both), c(2L, 2L)), both[, "lower"] <= both[, "upper"],
  identical(both[2, ], epsilon_bounds(0.01, 2, 1000, 1e-5)[1, ]),
  nrow(epsilon_bounds(numeric(0), 1, 1, 1e-5)) == 0L,
  identical(get_epsilon(0.01, 1L, 1000L), get_epsilon(0.01, 1, 1000)),
  get_epsilon_rdp(0.01, 1, 1000)[, "epsilon"] > get_epsilon(0.01, 1, 1000)
)

one <- list(part(0.01, 1, 1000))
stopifnot(identical(composition_epsilon_bounds(one, 1e-5), epsilon_bounds(0.01, 1, 1000, 1e-5)))
stopifnot(identical(composition_delta_bounds(one[[1]], 1), delta_bounds(0.01, 1, 1000, 1)))
stopifnot(composition_epsilon_bounds(list(), 1e-5) == 0)

raised <- function(expression, class) {
  found <- tryCatch(expression, error = identity)
  stopifnot(inherits(found, class))
  conditionMessage(found)
}
stopifnot(grepl("element 2", raised(get_epsilon(0.01, c(1, -1), 10), "accountant_domain_error")))
stopifnot(grepl("sigma must be a number > 0; got -1$", raised(get_epsilon(0.01, c(1, -1), 10), "error")))
stopifnot(grepl("q must be a probability in \\[0, 1\\]; got 1.5", raised(get_epsilon(1.5, 1, 10), "error")))
raised(get_epsilon(NaN, 1, 10), "accountant_domain_error")
raised(get_epsilon(NA_real_, 1, 10), "accountant_domain_error")
raised(calibrate_steps(1, 1e-5, 0, 1), "accountant_unbounded_error")
raised(mixture_epsilon_bounds(shifts(2:1, c(0.1, 0.1)), 1, 1, 0.1), "accountant_domain_error")
raised(get_epsilon("0.01", 1, 10), "error")
raised(shifts(1:2, 0.1), "error")
raised(part(0.1, c(1, 2)), "error")
raised(composition_epsilon_bounds(list(1), 0.1), "error")
raised(epsilon_bounds(0.1, 1, 1, 0.1, "both"), "error")
