epsilon_bounds <- function(q, sigma, steps, delta, direction = "either") {
  x <- recycled(q = q, sigma = sigma, steps = steps, delta = delta)
  bracket(.Call(C_epsilon_bounds, x$q, x$sigma, x$steps, x$delta, direction_of(direction)))
}

delta_bounds <- function(q, sigma, steps, epsilon, direction = "either") {
  x <- recycled(q = q, sigma = sigma, steps = steps, epsilon = epsilon)
  bracket(.Call(C_delta_bounds, x$q, x$sigma, x$steps, x$epsilon, direction_of(direction)))
}

rdp_bounds <- function(q, sigma, order, direction = "either") {
  x <- recycled(q = q, sigma = sigma, order = order)
  bracket(.Call(C_rdp_bounds, x$q, x$sigma, x$order, direction_of(direction)))
}

get_epsilon <- function(q, sigma, steps, delta = 1e-5) {
  upper(epsilon_bounds(q, sigma, steps, delta))
}

get_delta <- function(q, sigma, steps, epsilon) {
  upper(delta_bounds(q, sigma, steps, epsilon))
}

get_rdp <- function(q, sigma, order) {
  upper(rdp_bounds(q, sigma, order))
}

get_epsilon_rdp <- function(q, sigma, steps, delta = 1e-5) {
  x <- recycled(q = q, sigma = sigma, steps = steps, delta = delta)
  found <- answered(.Call(C_epsilon_rdp, x$q, x$sigma, x$steps, x$delta, directions[["either"]]))
  colnames(found) <- c("epsilon", "order")
  found
}

gaussian_epsilon_bounds <- function(sigma, delta) {
  x <- recycled(sigma = sigma, delta = delta)
  bracket(.Call(C_gaussian_epsilon_bounds, x$sigma, x$delta))
}

gaussian_delta_bounds <- function(sigma, epsilon) {
  x <- recycled(sigma = sigma, epsilon = epsilon)
  bracket(.Call(C_gaussian_delta_bounds, x$sigma, x$epsilon))
}

libaccountant_version <- function() .Call(C_version)
