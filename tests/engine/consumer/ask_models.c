// ask_models.c: asks models, whose paths are lines of standard input, for means and intervals
// SPDX-License-Identifier: BSD-3-Clause
//
// ask_models ROWS TYPE N_ROWS N_FEATURES OPENING KIND N_THREADS BY OTHER_MEANS COVERAGE ... < PATHS
//
// BY and OTHER_MEANS are files, of whose numbers the latter has one for each row and output, or -.
// For each path it writes the status and message of what failed first; if all went well numbers
// follow: outputs, the intervals, the means, and the same intervals by the leaves of rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdicore/c_api.h"

static void* memory(size_t n_bytes) {
    void* found = malloc(n_bytes + 1);
    if (found == NULL) exit(3);
    return found;
}

static void* content(const char* path, size_t n_bytes) {
    void* found = memory(n_bytes);
    FILE* file = fopen(path, "rb");
    if (file == NULL || fread(found, 1, n_bytes, file) != n_bytes) exit(3);
    fclose(file);
    return found;
}

static double* given(const char* path, size_t n) {
    return strcmp(path, "-") == 0 ? NULL : content(path, n * sizeof(double));
}

static void put(const void* values, size_t n_bytes) {
    if (fwrite(values, 1, n_bytes, stdout) != n_bytes) exit(3);
}

static int put_status(int status, const hdicore_error* error) {
    put(&status, sizeof status);
    put(error->message, sizeof error->message);
    return status;
}

int main(int n_arguments, char** arguments) {
    if (n_arguments < 10) return 2;
    const int is_float = arguments[2][0] == 'f';
    const int64_t n = atoll(arguments[3]), n_features = atoll(arguments[4]);
    const int opening = atoi(arguments[5]), kind = atoi(arguments[6]);
    const int n_threads = atoi(arguments[7]);
    const size_t size = is_float ? sizeof(float) : sizeof(double);
    void* values = content(arguments[1], (size_t)(n * n_features) * size);
    const hdicore_rows X = {n, n_features, is_float ? values : NULL, is_float ? NULL : values};
    const int64_t n_levels = n_arguments - 10;
    double* levels = memory((size_t)n_levels * sizeof(double));
    for (int64_t k = 0; k < n_levels; ++k) levels[k] = atof(arguments[10 + k]);

    const hdicore_api* api = hdicore_get_api();
    char path[4096];
    while (fgets(path, sizeof path, stdin) != NULL) {
        path[strcspn(path, "\n")] = 0;
        hdicore_error error = {""};
        hdicore_model* model = NULL;
        int status = hdicore_model_open(path, opening, &model, &error);
        if (status != hdicore_ok) {
            put_status(status, &error);
            continue;
        }
        const size_t outputs = (size_t)hdicore_model_n_outputs(model) * (size_t)n;
        const size_t trees = (size_t)hdicore_model_n_trees(model);
        double* ends = memory(outputs * 2 * (size_t)n_levels * sizeof(double));
        double* means = memory(outputs * sizeof(double));
        double* same_means = memory(outputs * sizeof(double));
        int32_t* leaves = memory((size_t)n * trees * sizeof(int32_t));
        double* by = given(arguments[8], (size_t)n);
        double* others = given(arguments[9], outputs);
        hdicore_index* index = hdicore_model_index(model);
        status = hdicore_model_predict(model, &X, by, others, levels, n_levels, kind, n_threads,
                                       ends, means, &error);
        if (status == hdicore_ok) status = hdicore_model_mean(model, &X, 1, same_means, &error);
        if (status == hdicore_ok && memcmp(means, same_means, outputs * sizeof(double)) != 0)
            return 5;
        if (status == hdicore_ok) status = hdicore_model_leaves(model, &X, 1, leaves, &error);
        if (put_status(status, &error) == hdicore_ok) {
            const double n_outputs = (double)(outputs / (size_t)n);
            put(&n_outputs, sizeof n_outputs);
            put(ends, outputs * 2 * (size_t)n_levels * sizeof(double));
            put(means, outputs * sizeof(double));
            if (api->index_intervals(index, leaves, n, levels, n_levels, hdicore_hdi, 1, ends,
                                     &error) != hdicore_ok)
                return 4;
            put(ends, outputs * 2 * (size_t)n_levels * sizeof(double));
        }
        hdicore_model_close(model);
        api->index_release(index);
        free(ends);
        free(means);
        free(same_means);
        free(by);
        free(others);
        free(leaves);
    }
    free(values);
    free(levels);
    return 0;
}
