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
  lapply(given, function(x) rep_len(as.double(x), max(lengths)))
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
