shifts <- function(shift, weight, no_shift = 0, weight_error = 0) {
  if (!is.numeric(shift) || !is.numeric(weight) || length(shift) != length(weight)) {
    stop("shift and weight must be numeric and of one length; got lengths ", length(shift), " and ",
      length(weight),
      call. = FALSE
    )
  }
  law <- list(as.double(shift), as.double(weight), as.double(c(no_shift, weight_error)))
  if (length(law[[3]]) != 2L) stop("no_shift and weight_error must be single numbers", call. = FALSE)
  structure(law, class = "accountant_shifts")
}

law_in <- function(law) {
  if (!inherits(law, "accountant_shifts")) stop("law must be made by shifts()", call. = FALSE)
  unclass(law)
}

mixture_epsilon_bounds <- function(law, sigma, steps, delta, direction = "either") {
  x <- recycled(sigma = sigma, steps = steps, delta = delta)
  bracket(.Call(C_mixture_epsilon_bounds, law_in(law), x$sigma, x$steps, x$delta, direction_of(direction)))
}

mixture_delta_bounds <- function(law, sigma, steps, epsilon, direction = "either") {
  x <- recycled(sigma = sigma, steps = steps, epsilon = epsilon)
  bracket(.Call(C_mixture_delta_bounds, law_in(law), x$sigma, x$steps, x$epsilon, direction_of(direction)))
}

part <- function(q = 1, sigma, steps = 1, shifts = NULL) {
  if (!is.null(shifts)) law_in(shifts)
  numbers <- list(q = q, sigma = sigma, steps = steps)
  for (name in names(numbers)) {
    if (!is.numeric(numbers[[name]]) || length(numbers[[name]]) != 1L) {
      stop(name, " must be one number", call. = FALSE)
    }
  }
  structure(c(lapply(numbers, as.double), list(shifts = shifts)), class = "accountant_part")
}

composed <- function(entry, parts, given, direction) {
  if (inherits(parts, "accountant_part")) parts <- list(parts)
  if (!all(vapply(parts, inherits, TRUE, "accountant_part"))) {
    stop("parts must be a list of what part() makes", call. = FALSE)
  }
  number <- function(name) vapply(parts, function(one) one[[name]], 0)
  laws <- lapply(parts, function(one) if (!is.null(one$shifts)) law_in(one$shifts))
  bracket(.Call(entry, number("q"), number("sigma"), number("steps"), laws, given, direction_of(direction)))
}

composition_epsilon_bounds <- function(parts, delta, direction = "either") {
  composed(C_composition_epsilon_bounds, parts, recycled(delta = delta)$delta, direction)
}

composition_delta_bounds <- function(parts, epsilon, direction = "either") {
  composed(C_composition_delta_bounds, parts, recycled(epsilon = epsilon)$epsilon, direction)
}
