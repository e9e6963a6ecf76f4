# What every function shares: its arguments become numbers of one length, its statuses conditions.

directions <- c(remove = 0L, add = 1L, either = 2L)

direction_of <- function(direction) {
  directions[[match.arg(direction, names(directions))]]
}

# Recycles numeric arguments to one length, as arithmetic does.
recycled <- function(...) {
  given <- list(...)
  for (name in names(given)) {
    if (!is.numeric(given[[name]])) {
      stop(name, " must be numeric; got ", class(given[[name]])[1], call. = FALSE)
    }
  }
  lengths <- lengths(given)
  if (any(lengths == 0L)) {
    return(lapply(given, function(x) numeric(0)))
  }
  structure(lapply(given, function(x) rep_len(as.double(x), max(lengths))), recycled = TRUE)
}

# Where arguments may lie, by name.
domains <- list(
  q = list("a probability in [0, 1]", function(x) x >= 0 && x <= 1),
  sigma = list("a number > 0", function(x) x > 0),
  steps = list("a whole number >= 0", function(x) x >= 0 && x == floor(x)),
  delta = list("a probability in [0, 1)", function(x) x >= 0 && x < 1),
  epsilon = list("a number >= 0", function(x) x >= 0),
  target_epsilon = list("a number > 0", function(x) x > 0),
  order = list("a number > 1", function(x) x > 1)
)

# Names the arguments of an element that are outside their domains; nothing where none is.
outside <- function(x, element) {
  said <- character(0)
  for (name in if (isTRUE(attr(x, "recycled"))) intersect(names(x), names(domains))) {
    value <- x[[name]][element]
    if (!isTRUE(domains[[name]][[2]](value))) {
      said <- c(said, paste0(name, " must be ", domains[[name]][[1]], "; got ", format(value)))
    }
  }
  if (length(said)) paste0(": ", paste(said, collapse = "; ")) else ""
}

# Raises the first status that is no answer.
answered <- function(found) {
  status <- attr(found, "status")
  failed <- which(status != 0L)
  if (length(failed) > 0L) {
    first <- failed[1]
    kind <- c("domain", "memory", "precision", "unbounded")[-status[first]]
    where <- if (length(status) > 1L) paste0(" (element ", first, ")") else ""
    text <- paste0(.Call(C_status_message, status[first]), where)
    given <- dynGet("x", NULL) # what recycled() made of the arguments, in the function that asked
    if (kind == "domain") text <- paste0(text, outside(given, first))
    stop(structure(
      class = c(paste0("accountant_", kind, "_error"), "accountant_error", "error", "condition"),
      list(message = text, call = sys.call(-2))
    ))
  }
  attr(found, "status") <- NULL
  found
}

bracket <- function(found) {
  found <- answered(found)
  colnames(found) <- c("lower", "upper")
  found
}

first_column <- function(found) answered(found)[, 1]

upper <- function(bounds) unname(bounds[, "upper"])
