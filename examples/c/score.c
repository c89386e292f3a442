// score.c: opens a model file, and prints the intervals of the rows on standard input
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "hdicore/c_api.h"

// Whether the line of standard input goes on.
static int goes_on(void) {
    int next;
    do next = getchar();
    while (next == ' ' || next == '\t' || next == '\r');
    if (next == '\n' || next == EOF) return 0;
    return ungetc(next, stdin), 1;
}

int main(int n_arguments, char** arguments) {
    if (n_arguments != 3) return fprintf(stderr, "score MODEL COVERAGE < ROWS\n"), 2;
    hdicore_error error;
    hdicore_model* model;
    if (hdicore_model_open(arguments[1], hdicore_mapped, &model, &error) != hdicore_ok)
        return fprintf(stderr, "%s: %s\n", arguments[1], error.message), 1;
    const double coverage = atof(arguments[2]);
    const int64_t n_features = hdicore_model_n_features(model);
    const int64_t n_outputs = hdicore_model_n_outputs(model);
    double* row = malloc((size_t)(n_features + 2 * n_outputs) * sizeof(double));
    double* ends = row + n_features;
    const hdicore_rows X = {1, n_features, NULL, row};
    int64_t n_read = 0, n_rows = 0;
    int failed = 0;
    while (n_read < n_features && scanf("%lf", row + n_read) == 1) {
        ++n_read;
        if (goes_on()) continue;
        if (n_read < n_features) break;
        n_read = 0;
        ++n_rows;
        failed = hdicore_model_intervals(model, &X, &coverage, 1, hdicore_usual, 1, ends, &error) !=
                 hdicore_ok;
        if (failed) break;
        for (int64_t i = 0; i < 2 * n_outputs; ++i) printf("%.17g ", ends[i]);
        putchar('\n');
    }
    if (failed) {
        fprintf(stderr, "%s\n", error.message);
    } else if (n_read > 0 || !feof(stdin)) {
        fprintf(stderr, "row %lld must hold %lld numbers\n", (long long)n_rows + 1,
                (long long)n_features);
        failed = 1;
    }
    free(row);
    hdicore_model_close(model);
    return failed;
}
