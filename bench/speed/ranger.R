# Fits ranger on a table, then does the work that a line of standard input names, and says its time.
suppressMessages(library(ranger))
given <- commandArgs(trailingOnly = TRUE)
train <- read.csv(given[1])
new <- read.csv(given[2])
forest <- ranger(
  target ~ ., train,
  num.trees = as.integer(given[3]), min.node.size = as.integer(given[4]), mtry = ncol(new),
  quantreg = TRUE, num.threads = 2, seed = 1, verbose = FALSE
)
works <- list(
  mean = function() predict(forest, new, num.threads = 1),
  quantiles = function() {
    predict(forest, new, type = "quantiles", quantiles = c(0.05, 0.95), num.threads = 1)
  }
)
cat("ready\n")
input <- file("stdin", open = "r")
while (length(line <- readLines(input, n = 1)) > 0) {
  took <- system.time(works[[line]]())
  cat(took[["user.self"]] + took[["sys.self"]], "\n")
}
