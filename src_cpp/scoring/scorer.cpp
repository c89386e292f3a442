// scoring/scorer.cpp: blocks and threads, nothing else
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/scorer.hpp"

#include <memory>
#include <optional>
#include <string>

#include "base/refusal.hpp"
#include "merge/merger.hpp"
#include "scoring/row_centres.hpp"
#include "scoring/row_means.hpp"
#include "scoring/row_reader.hpp"

namespace hdicore {
namespace {

// What one thread needs for what is asked.
struct ScoreWorker {
    std::optional<Merger> merger;
    std::optional<RowMeans> means;
    std::optional<RowCentres> centres;
    std::optional<RowReader> reader;
};

}  // namespace

void score(const LeafIndex& index, const LeafSource& source,
           std::span<const std::uint32_t> leave_out, const Request& request,
           const Execution& execution) {
    check_leave_out(index, leave_out, source.n_rows());
    check_censored(index, request);
    const std::span<const double> centres = request.intervals.centres;
    const bool copies = leave_out.empty() && is_copied(request);
    // Without its own row a leaf has another mean, which the merger finds.
    const bool means_of_leaves = !request.mean.is_empty() && leave_out.empty();
    const bool merges = !leave_out.empty() || !needs(request).nothing;
    const LeafMeans* means =
        means_of_leaves ? index.means(source.n_rows(), execution.n_threads, execution.interruption)
                        : nullptr;
    const auto make_worker = [&](std::size_t max_rows) {
        // Not std::make_shared, which would clear its 27 kB.
        const std::shared_ptr<ScoreWorker> worker(new ScoreWorker);
        if (merges) worker->merger.emplace(index, request, execution.strategy, execution.kernels);
        if (means_of_leaves) {
            worker->means.emplace(index, means, request.mean.results, execution.interruption,
                                  max_rows);
        }
        if (!centres.empty()) worker->centres.emplace(index, centres, max_rows);
        const bool needs_leaves = merges && worker->merger->needs_leaves();
        worker->reader.emplace(index, source, needs_leaves, execution.interruption, max_rows);
        return [&, worker](std::size_t begin, std::size_t end) {
            const RowBlock& block = worker->reader->find_leaves(begin, end);
            if (worker->means) worker->means->find(begin, block);
            if (worker->centres) worker->centres->find(block);
            if (!worker->merger) return;
            Merger& merger = *worker->merger;
            const auto answer = [&](SameRows rows, std::size_t output, RowSlices slices,
                                    RowSlices next) {
                if (leave_out.empty()) merger.prefetch(next);
                for (std::size_t k = 0; k < rows.size(); ++k) {
                    const std::size_t at = rows[k] * index.n_outputs() + output;
                    if (k > 0 && copies) {
                        copy(request, rows[0] * index.n_outputs() + output, at);
                        continue;
                    }
                    if (k > 0) execution.interruption.check();
                    if (leave_out.empty()) {
                        merger.evaluate(output, slices, at);
                    } else {
                        merger.evaluate_without(output, slices, leave_out[rows[k]], at);
                    }
                }
            };
            worker->reader->read_slices(begin, answer);
            if (worker->centres) worker->centres->shift(request.intervals, begin, block);
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), execution, make_worker);
}

void check_censored(const LeafIndex& index, const Request& request) {
    if (!index.arrays().censored()) return;
    if (!request.mean.is_empty()) {
        refuse("the mean of censored targets is not known where events lie beyond the last time");
    }
    if (request.quantiles.interpolation != Interpolation::inverted_cdf) {
        refuse("quantiles of censored targets are those of method 'inverted_cdf'");
    }
    if (!request.priced.is_empty() || !request.regions.is_empty()) {
        refuse("an index of censored targets has no priced intervals and no regions");
    }
}

void check_leave_out(const LeafIndex& index, std::span<const std::uint32_t> leave_out,
                     std::size_t n_rows) {
    if (leave_out.empty()) return;
    if (!index.row_weights()) {
        refuse("leave_out needs an index built with keep_row_weights");
    }
    const std::size_t n_training_rows = index.row_weights()->rows.size();
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (leave_out[i] >= n_training_rows) {
            refuse("leave_out[" + std::to_string(i) + "] names training row " +
                   std::to_string(leave_out[i]) + " of " + std::to_string(n_training_rows));
        }
    }
}

void check_same_trees(const Forest& forest, const LeafIndex& index) {
    if (forest.n_trees() != index.n_trees()) {
        refuse("index must be of the forest's " + std::to_string(forest.n_trees()) +
               " trees, got " + std::to_string(index.n_trees()));
    }
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
        if (forest.n_leaves(t) != index.n_leaves(t)) {
            refuse("index has " + std::to_string(index.n_leaves(t)) + " leaves in tree " +
                   std::to_string(t) + ", but the forest has " +
                   std::to_string(forest.n_leaves(t)));
        }
        for (std::size_t l = 0; index.has_leaf_mask() && l < index.n_leaves(t); ++l) {
            if (index.has_leaf(t, static_cast<leaf_t>(l))) continue;
            refuse("index knows no training row in leaf " + std::to_string(l) + " of tree " +
                   std::to_string(t) + "; build it with n_leaves for leaves that may be empty");
        }
    }
}

}  // namespace hdicore
