// scorer.cpp: blocks of rows, each from its leaves to its results on one thread
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/scorer.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "hdicore/distribution.hpp"
#include "hdicore/parallel.hpp"

namespace hdicore {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Rows per block: large enough to keep a tree's nodes in cache while rows pass, small enough for
// the rows and their leaves to stay there too and for every thread to get several blocks. `width`
// is how many numbers a row takes meanwhile.
std::size_t choose_block_rows(std::size_t n_rows, std::size_t width, const Run& run) {
    if (run.block_rows > 0) return run.block_rows;
    const std::size_t by_cache = std::clamp<std::size_t>((std::size_t{1} << 18) / width, 64, 4096);
    const std::size_t by_threads = n_rows / (4 * usable_threads(run.n_threads));
    return std::max<std::size_t>(16, std::min(by_cache, by_threads));
}

// Calls a worker with each block of rows [begin, end).
template <class MakeRangeWorker>
void for_each_block(std::size_t n_rows, std::size_t width, const Run& run,
                    const MakeRangeWorker& make_range_worker) {
    const std::size_t block_rows = choose_block_rows(n_rows, width, run);
    const std::size_t n_blocks = n_rows / block_rows + (n_rows % block_rows != 0);
    parallel_for(n_blocks, run.n_threads, [&]() -> Worker {
        return [&, work = make_range_worker(std::min(block_rows, n_rows))](std::size_t b) mutable {
            const std::size_t begin = b * block_rows;
            work(begin, std::min(n_rows, begin + block_rows));
        };
    });
}

void read(const Atoms& atoms, const Wanted& wanted, std::size_t at) {
    const bool silent = atoms.size() == 0;
    if (wanted.mean != nullptr) wanted.mean[at] = silent ? nan : atoms.mean();

    const std::size_t n_coverages = wanted.coverages.size();
    for (std::size_t k = 0; k < n_coverages; ++k) {
        const Interval found =
            silent ? Interval{nan, nan} : interval(atoms, wanted.coverages[k], wanted.kind);
        wanted.intervals[(2 * at) * n_coverages + k] = found.lower;
        wanted.intervals[(2 * at + 1) * n_coverages + k] = found.upper;
    }
    for (std::size_t k = 0; k < wanted.levels.size(); ++k) {
        wanted.quantiles[at * wanted.levels.size() + k] =
            silent ? nan : quantile(atoms, wanted.levels[k], wanted.interpolation);
    }
    for (std::size_t k = 0; k < wanted.n_points; ++k) {
        const std::size_t i = at * wanted.n_points + k;
        wanted.cdf[i] = silent ? nan : atoms.cdf(wanted.points[i]);
    }
    for (std::size_t k = 0; k < wanted.n_draws; ++k) {
        double& value = wanted.draws[at * wanted.n_draws + k];
        value = silent ? nan : atoms.draw(value);
    }
}

// One thread's way from rows to distributions.
class BlockWorker {
  public:
    BlockWorker(const LeafIndex& index, const LeafSource& source, std::size_t most_rows)
        : index_(index), source_(source), leaves_(most_rows * index.n_trees()), row_(index) {}

    // Calls use(row, output, distribution) for each row of [begin, end).
    template <class Use>
    void run(std::size_t begin, std::size_t end, const std::uint32_t* leave_out, const Use& use) {
        source_.leaves(begin, end, scratch_, leaves_.data());
        for (std::size_t i = begin; i < end; ++i) {
            const leaf_t* leaves = leaves_.data() + (i - begin) * index_.n_trees();
            for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
                if (leave_out == nullptr) {
                    row_.gather(o, leaves);
                } else {
                    const RowWeights& kept = *index_.row_weights();
                    row_.gather_without(o, leaves,
                                        kept.ranks[leave_out[i] * index_.n_outputs() + o],
                                        kept.rows[leave_out[i]]);
                }
                use(i, o, row_);
            }
        }
    }

  private:
    const LeafIndex& index_;
    const LeafSource& source_;
    std::vector<leaf_t> leaves_;
    std::vector<float> scratch_;
    Distribution row_;
};

void check_leave_out(const LeafIndex& index, const std::uint32_t* leave_out, std::size_t n_rows) {
    if (leave_out == nullptr) return;
    if (!index.row_weights()) {
        throw std::invalid_argument("leave_out needs an index built with keep_row_weights");
    }
    const std::size_t n_training_rows = index.row_weights()->rows.size();
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (leave_out[i] >= n_training_rows) {
            throw std::invalid_argument("leave_out[" + std::to_string(i) + "] names training row " +
                                        std::to_string(leave_out[i]) + " of " +
                                        std::to_string(n_training_rows));
        }
    }
}

}  // namespace

RoutedRows::RoutedRows(const Forest& forest, const RowMatrix& rows) : forest_(forest), rows_(rows) {
    if (rows.n_features != forest.n_features()) {
        throw std::invalid_argument("X has " + std::to_string(rows.n_features) +
                                    " features, but the forest expects " +
                                    std::to_string(forest.n_features()));
    }
}

void RoutedRows::leaves(std::size_t begin, std::size_t end, std::vector<float>& scratch,
                        leaf_t* out) const {
    scratch.resize((end - begin) * rows_.n_features);
    rows_.copy_rows(begin, end, scratch.data());
    forest_.route(scratch.data(), end - begin, out);
}

void GivenLeaves::leaves(std::size_t begin, std::size_t end, std::vector<float>&,
                         leaf_t* out) const {
    const std::size_t m = index_.n_trees();
    std::copy(leaves_ + begin * m, leaves_ + end * m, out);
    for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t t = 0; t < m; ++t) {
            const leaf_t leaf = out[(i - begin) * m + t];
            if (leaf >= no_leaf && leaf < static_cast<std::int64_t>(index_.n_leaves(t))) continue;
            throw std::invalid_argument("leaves[" + std::to_string(i) + ", " + std::to_string(t) +
                                        "] must be a leaf of tree " + std::to_string(t) +
                                        ", below " + std::to_string(index_.n_leaves(t)) +
                                        ", or -1, got " + std::to_string(leaf));
        }
    }
}

void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               leaf_t* out) {
    const RoutedRows source(forest, rows);
    const std::size_t m = forest.n_trees();
    for_each_block(rows.n_rows, std::max(m, rows.n_features), {n_threads, 0}, [&](std::size_t) {
        return [&, scratch = std::vector<float>()](std::size_t begin, std::size_t end) mutable {
            source.leaves(begin, end, scratch, out + begin * m);
            if (!node_ids) return;
            std::size_t first_leaf = 0;
            for (std::size_t t = 0; t < m; ++t) {
                for (std::size_t i = begin; i < end; ++i) {
                    leaf_t& leaf = out[i * m + t];
                    leaf = forest.leaf_nodes()[first_leaf + static_cast<std::size_t>(leaf)];
                }
                first_leaf += forest.n_leaves(t);
            }
        };
    });
}

void score(const LeafIndex& index, const LeafSource& source, const std::uint32_t* leave_out,
           const Wanted& wanted, const Run& run) {
    check_leave_out(index, leave_out, source.n_rows());
    for_each_block(source.n_rows(), std::max(index.n_trees(), source.scratch_width()), run,
                   [&](std::size_t most_rows) {
                       return [&, worker = BlockWorker(index, source, most_rows)](
                                  std::size_t begin, std::size_t end) mutable {
                           worker.run(begin, end, leave_out,
                                      [&](std::size_t i, std::size_t o, const Distribution& row) {
                                          read(row.atoms(), wanted, i * index.n_outputs() + o);
                                      });
                       };
                   });
}

Weights weights(const LeafIndex& index, const LeafSource& source, const Run& run) {
    if (index.n_outputs() != 1) throw std::invalid_argument("weights needs an index of one output");
    Weights found;
    found.indptr.assign(source.n_rows() + 1, 0);
    // Twice through the rows: once for their sizes, once to fill; nothing else grows with them.
    const auto each_row = [&](const auto& use) {
        for_each_block(source.n_rows(), std::max(index.n_trees(), source.scratch_width()), run,
                       [&](std::size_t most_rows) {
                           return [&, worker = BlockWorker(index, source, most_rows)](
                                      std::size_t begin, std::size_t end) mutable {
                               worker.run(begin, end, nullptr,
                                          [&](std::size_t i, std::size_t, const Distribution& row) {
                                              use(i, row);
                                          });
                           };
                       });
    };
    each_row([&](std::size_t i, const Distribution& row) {
        found.indptr[i + 1] = static_cast<std::int64_t>(row.atoms().size());
    });
    for (std::size_t i = 0; i < source.n_rows(); ++i) found.indptr[i + 1] += found.indptr[i];
    found.indices.resize(static_cast<std::size_t>(found.indptr.back()));
    found.data.resize(found.indices.size());
    each_row([&](std::size_t i, const Distribution& row) {
        const Atoms atoms = row.atoms();
        const auto at = static_cast<std::size_t>(found.indptr[i]);
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            found.indices[at + k] = static_cast<std::int32_t>(row.ranks()[k]);
            found.data[at + k] =
                static_cast<double>(atoms.cumulative[k + 1] - atoms.cumulative[k]) /
                static_cast<double>(atoms.total());
        }
    });
    return found;
}

Scorer::Scorer(std::shared_ptr<const Forest> forest, std::shared_ptr<const LeafIndex> index)
    : forest_(std::move(forest)), index_(std::move(index)) {
    if (forest_->n_trees() != index_->n_trees()) {
        throw std::invalid_argument("index must be of the forest's " +
                                    std::to_string(forest_->n_trees()) + " trees, got " +
                                    std::to_string(index_->n_trees()));
    }
    for (std::size_t t = 0; t < forest_->n_trees(); ++t) {
        if (forest_->n_leaves(t) != index_->n_leaves(t)) {
            throw std::invalid_argument(
                "index has " + std::to_string(index_->n_leaves(t)) + " leaves in tree " +
                std::to_string(t) + ", but the forest has " + std::to_string(forest_->n_leaves(t)));
        }
    }
}

}  // namespace hdicore
