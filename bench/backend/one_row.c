// one_row.c: times calls for one row of a model file, and prints the microseconds of each
// SPDX-License-Identifier: BSD-3-Clause
//
// one_row MODEL ROWS N_ROWS KIND, where ROWS is a file of doubles
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hdicore/c_api.h"

static double now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int n_arguments, char** arguments) {
    if (n_arguments != 5) return 2;
    hdicore_error error;
    hdicore_model* model;
    const double start = now();
    if (hdicore_model_open(arguments[1], hdicore_mapped, &model, &error) != hdicore_ok) return 1;
    fprintf(stderr, "%.0f\n", now() - start);
    const int64_t n = atoll(arguments[3]), n_features = hdicore_model_n_features(model);
    double* rows = malloc((size_t)(n * n_features + 1) * sizeof(double));
    FILE* file = fopen(arguments[2], "rb");
    if (file == NULL || fread(rows, sizeof(double), (size_t)(n * n_features), file) == 0) return 1;
    fclose(file);
    const double coverage = 0.9;
    double ends[2];
    for (int64_t i = 0; i < n; ++i) {
        const hdicore_rows X = {1, n_features, NULL, rows + i * n_features};
        const double begin = now();
        if (hdicore_model_intervals(model, &X, &coverage, 1, atoi(arguments[4]), 1, ends, &error) !=
            hdicore_ok)
            return 1;
        printf("%.3f %.17g %.17g\n", now() - begin, ends[0], ends[1]);
    }
    hdicore_model_close(model);
    free(rows);
    return 0;
}
