# The questions that every language is asked, bit for bit: ACCOUNTANT_CASES names their file, which
# libaccountant/tests/make_cases.py writes.
library(accountant)

path <- Sys.getenv("ACCOUNTANT_CASES")
if (path == "") {
  cat("skipped: ACCOUNTANT_CASES names no file of cases\n")
  quit()
}
ways <- c("remove", "add", "either")

# Each takes the numbers of a line, the arguments in C's order.
law_in <- function(x) {
  n <- x[1]
  shifts(x[3 + seq_len(n)], x[3 + n + seq_len(n)], x[2], x[3])
}
parts_in <- function(x) {
  parts <- list()
  while (length(x) > 0) {
    n <- x[4]
    parts[[length(parts) + 1]] <- part(x[1], x[2], x[3], if (n > 0) law_in(x[-(1:3)]))
    x <- x[-seq_len(if (n > 0) 6 + 2 * n else 4)]
  }
  parts
}
five <- function(ask) function(x) ask(x[1], x[2], x[3], x[4], ways[x[5] + 1])
of_law <- function(ask) function(x) ask(law_in(x[-(1:4)]), x[1], x[2], x[3], ways[x[4] + 1])
functions <- list(
  epsilon_bounds = five(epsilon_bounds),
  delta_bounds = five(delta_bounds),
  renyi_bounds = function(x) rdp_bounds(x[1], x[2], x[3], ways[x[4] + 1]),
  epsilon_renyi_upper = function(x) get_epsilon_rdp(x[1], x[2], x[3], x[4]),
  gaussian_epsilon_bounds = function(x) gaussian_epsilon_bounds(x[1], x[2]),
  gaussian_delta_bounds = function(x) gaussian_delta_bounds(x[1], x[2]),
  mixture_epsilon_bounds = of_law(mixture_epsilon_bounds),
  mixture_delta_bounds = of_law(mixture_delta_bounds),
  composition_epsilon_bounds = function(x) composition_epsilon_bounds(parts_in(x[-(1:3)]), x[1], ways[x[2] + 1]),
  composition_delta_bounds = function(x) composition_delta_bounds(parts_in(x[-(1:3)]), x[1], ways[x[2] + 1]),
  calibrate_sigma = function(x) calibrate_sigma(x[1], x[2], x[3], x[4]),
  calibrate_steps = function(x) calibrate_steps(x[1], x[2], x[3], x[4]),
  calibrate_q = function(x) calibrate_q(x[1], x[2], x[3], x[4])
)
classes <- c("accountant_domain_error", "accountant_memory_error", "accountant_precision_error", "accountant_unbounded_error")
number <- function(words) as.numeric(sub("^nan$", "NaN", sub("^(-?)inf$", "\\1Inf", words)))

lines <- grep("^#", readLines(path), value = TRUE, invert = TRUE)
differ <- 0
for (line in lines) {
  words <- strsplit(line, " ")[[1]]
  middle <- which(words == "=")
  asked <- number(words[seq_len(middle - 2) + 1])
  expected <- number(words[-seq_len(middle)])
  found <- tryCatch(c(0, functions[[words[1]]](asked)), accountant_error = function(e) -match(class(e)[1], classes))
  if (!identical(as.numeric(found), expected)) {
    differ <- differ + 1
    cat(line, "\n  R: ", sprintf("%a", found), "\n")
  }
}
cat("cases:", length(lines), "answers,", differ, "of them different\n")
stopifnot(differ == 0, length(lines) > 0)
