// scoring/leaf_sums.cpp: one pass over the rows for each tree, and one over the trees for each row
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/leaf_sums.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

// The leaf of a row, which is checked each time: its memory may be the caller's.
std::size_t leaf_of(const LeavesOfRows& rows, std::size_t tree, std::size_t row) {
    const auto leaf = static_cast<std::size_t>(rows.leaves(tree, row));
    if (leaf >= rows.n_leaves(tree)) {
        throw std::invalid_argument("leaves must name leaves of the forest, got " +
                                    std::to_string(rows.leaves(tree, row)) + " in tree " +
                                    std::to_string(tree));
    }
    return leaf;
}

// Calls use(tree) for each.
template <class Use>
void each_tree(const LeavesOfRows& rows, unsigned n_threads, Interruption& interruption,
               const Use& use) {
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t tree) {
            interruption.check();
            use(tree);
        };
    };
    parallel_for(rows.n_trees(), n_threads, make_worker, interruption);
}

}  // namespace

void relabel(const LeavesOfRows& rows, std::span<const leaf_t> new_leaves, Matrix<leaf_t> result,
             unsigned n_threads, Interruption& interruption) {
    each_tree(rows, n_threads, interruption, [&](std::size_t tree) {
        const leaf_t* of_tree = new_leaves.data() + rows.offsets[tree];
        for (std::size_t i = 0; i < rows.n_rows(); ++i) {
            result(tree, i) = of_tree[leaf_of(rows, tree, i)];
        }
    });
}

template <class Count>
void count_drawn(const LeavesOfRows& rows, Matrix<const Count> counts,
                 std::span<std::int64_t> sizes, unsigned n_threads, Interruption& interruption) {
    std::ranges::fill(sizes, 0);
    each_tree(rows, n_threads, interruption, [&](std::size_t tree) {
        std::int64_t* of_tree = sizes.data() + rows.offsets[tree];
        for (std::size_t i = 0; i < rows.n_rows(); ++i) {
            of_tree[leaf_of(rows, tree, i)] += counts(tree, i) != 0;
        }
    });
}

template <class Count>
void find_oob_means(const LeavesOfRows& rows, Matrix<const Count> counts, std::span<const double> y,
                    std::span<const double> draw_weight, const OutOfBagMeans& means,
                    unsigned n_threads, Interruption& interruption) {
    std::ranges::fill(means.leaf_means, 0);
    std::ranges::fill(means.leaf_weight, 0);
    each_tree(rows, n_threads, interruption, [&](std::size_t tree) {
        double* sums = means.leaf_means.data() + rows.offsets[tree];
        double* weights = means.leaf_weight.data() + rows.offsets[tree];
        for (std::size_t i = 0; i < rows.n_rows(); ++i) {
            if (counts(tree, i) == 0) continue;
            const std::size_t leaf = leaf_of(rows, tree, i);
            const auto times = static_cast<double>(counts(tree, i));
            const double weight = draw_weight.empty() ? times : times * draw_weight[i];
            weights[leaf] += weight;
            sums[leaf] += weight * y[i];
        }
        for (std::size_t leaf = 0; leaf < rows.n_leaves(tree); ++leaf) {
            if (weights[leaf] > 0) sums[leaf] /= weights[leaf];
        }
    });
    constexpr std::size_t at_once = 4096;
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t block) {
            interruption.check();
            const std::size_t begin = block * at_once;
            const std::size_t end = std::min(rows.n_rows(), begin + at_once);
            std::fill(&means.centres[begin], &means.centres[begin] + (end - begin), 0.0);
            std::fill(&means.n_oob[begin], &means.n_oob[begin] + (end - begin), 0.0);
            for (std::size_t tree = 0; tree < rows.n_trees(); ++tree) {
                const double* of_tree = means.leaf_means.data() + rows.offsets[tree];
                for (std::size_t i = begin; i < end; ++i) {
                    const bool is_out = counts(tree, i) == 0;
                    const double mean = of_tree[leaf_of(rows, tree, i)];
                    means.centres[i] += is_out ? mean : 0;
                    means.n_oob[i] += is_out;
                }
            }
            for (std::size_t i = begin; i < end; ++i) {
                means.centres[i] /= std::max(means.n_oob[i], 1.0);
            }
        };
    };
    parallel_for((rows.n_rows() + at_once - 1) / at_once, n_threads, make_worker, interruption);
}

template void count_drawn(const LeavesOfRows&, Matrix<const std::uint8_t>, std::span<std::int64_t>,
                          unsigned, Interruption&);
template void count_drawn(const LeavesOfRows&, Matrix<const std::uint32_t>, std::span<std::int64_t>,
                          unsigned, Interruption&);
template void find_oob_means(const LeavesOfRows&, Matrix<const std::uint8_t>,
                             std::span<const double>, std::span<const double>, const OutOfBagMeans&,
                             unsigned, Interruption&);
template void find_oob_means(const LeavesOfRows&, Matrix<const std::uint32_t>,
                             std::span<const double>, std::span<const double>, const OutOfBagMeans&,
                             unsigned, Interruption&);

}  // namespace hdicore
