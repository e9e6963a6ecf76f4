calibrate_sigma <- function(target_epsilon, delta = 1e-5, q = 1, steps = 1) {
  x <- recycled(target_epsilon = target_epsilon, delta = delta, q = q, steps = steps)
  first_column(.Call(C_calibrate_sigma, x$target_epsilon, x$delta, x$q, x$steps))
}

calibrate_steps <- function(target_epsilon, delta = 1e-5, q, sigma) {
  x <- recycled(target_epsilon = target_epsilon, delta = delta, q = q, sigma = sigma)
  first_column(.Call(C_calibrate_steps, x$target_epsilon, x$delta, x$q, x$sigma))
}

calibrate_q <- function(target_epsilon, delta = 1e-5, sigma, steps) {
  x <- recycled(target_epsilon = target_epsilon, delta = delta, sigma = sigma, steps = steps)
  first_column(.Call(C_calibrate_q, x$target_epsilon, x$delta, x$sigma, x$steps))
}
