// scoring/scorer.cpp: blocks of rows, each from its leaves to its results on one thread
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/scorer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/parallel.hpp"
#include "merge/distribution.hpp"

namespace hdicore {
namespace {

// Threads for so many rows: starting one takes as long as walking some thousand trees.
unsigned threads_for(std::size_t n_rows, std::size_t n_trees, const Run& run) {
    const std::size_t worth = n_rows * n_trees / 10000;
    if (worth <= 1) return 1;  // finding out how many there are takes as long as some rows
    return static_cast<unsigned>(std::min<std::size_t>(worth, usable_threads(run.n_threads)));
}

// Where the blocks of rows begin, and the end: as large as the source likes, but smaller towards
// the end, so that threads finish at about the same time.
std::vector<std::size_t> cut_rows(std::size_t n_rows, std::size_t liked, unsigned n_threads,
                                  const Run& run) {
    const std::size_t least = liked / 4;
    std::vector<std::size_t> begins{0};
    while (begins.back() < n_rows) {
        const std::size_t rest = n_rows - begins.back();
        std::size_t block = run.block_rows;
        if (block == 0 && n_threads == 1) block = stride_of(liked);
        if (block == 0) {
            const std::size_t share = rest / (2 * n_threads) + 1;
            block =
                stride_of(std::min(liked, std::max(share, std::min(least, rest / n_threads + 1))));
        }
        begins.push_back(begins.back() + std::min(block, rest));
    }
    return begins;
}

// Calls workers with each block of rows [begin, end); each is made for blocks of up to so many
// rows.
template <class MakeRangeWorker>
void for_each_block(std::size_t n_rows, std::size_t n_trees, std::size_t liked, const Run& run,
                    const MakeRangeWorker& make_range_worker) {
    const unsigned n_threads = threads_for(n_rows, n_trees, run);
    const std::vector<std::size_t> begins = cut_rows(n_rows, liked, n_threads, run);
    std::size_t max_rows = 0;
    for (std::size_t b = 1; b < begins.size(); ++b) {
        max_rows = std::max(max_rows, begins[b] - begins[b - 1]);
    }
    const auto make_worker = [&]() -> Worker {
        return [&, work = make_range_worker(max_rows)](std::size_t b) mutable {
            work(begins[b], begins[b + 1]);
        };
    };
    parallel_for(begins.size() - 1, n_threads, make_worker, run.interruption);
}

// One thread's way from rows to distributions.
class BlockWorker {
  public:
    // For blocks of up to max_rows. Without `wanted`, all of each distribution is.
    BlockWorker(const LeafIndex& index, const LeafSource& source, const Wanted* wanted,
                const Run& run, std::size_t max_rows)
        : index_(index),
          source_(source),
          wanted_(wanted),
          interruption_(run.interruption),
          rows_between_checks_(rows_of_entries(std::size_t{1} << 20)),
          least_(wanted == nullptr ? 0 : least_share(*wanted)),
          automatic_(run.gathering == Gathering::automatic),
          has_avx512_(run.instructions == Instructions::avx512),
          way_(first_way(run.gathering)),
          row_leaves_(index.n_trees()),
          entries_(RowTiles::tile_rows * index.n_trees()),
          row_(index, run.instructions) {
        source.reserve(max_rows, block_);
        if (wanted == nullptr || needs_observation(*wanted)) row_.use_copies();
    }

    // Calls use(row, output, distribution, leaves) for each row of [begin, end), and once more with
    // the whole distribution if it returns false.
    template <class Use>
    void run(std::size_t begin, std::size_t end, const std::uint32_t* leave_out, const Use& use) {
        source_.leaves(begin, end, block_, interruption_);
        const std::size_t stride = stride_of(end - begin);
        for (std::size_t first = 0; first < end - begin; first += RowTiles::tile_rows) {
            const std::size_t n = std::min(RowTiles::tile_rows, end - begin - first);
            for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
                if (leave_out == nullptr) find_entries(o, block_.leaves.data() + first, stride);
                for (std::size_t k = 0; k < n; ++k) {
                    if (k % rows_between_checks_ == 0) interruption_.check();
                    const std::size_t i = begin + block_.order[first + k];
                    RowLeaves leaves{block_.leaves.data() + first + k, stride};
                    if (leave_out == nullptr) {
                        if (k + 1 < n && way_ != Gathering::buckets)
                            row_.prefetch(o, &entries_[k + 1], RowTiles::tile_rows);
                        gather(o, &entries_[k]);
                        if (use(i, o, row_, leaves)) continue;
                        ++n_failed_;
                        row_.gather(o, &entries_[k], RowTiles::tile_rows);
                    } else {
                        leaves.left_out = gather_without(o, leaves, leave_out[i]);
                    }
                    use(i, o, row_, leaves);
                }
            }
        }
    }

  private:
    // Rows of a tile that read about so many entries, at least one.
    std::size_t rows_of_entries(std::size_t n) const {
        const double each = index_.entries_per_leaf() * static_cast<double>(index_.n_trees()) + 1;
        const auto rows = static_cast<std::size_t>(static_cast<double>(n) / each);
        return std::clamp<std::size_t>(rows, 1, RowTiles::tile_rows);
    }

    // The way that reads least, of those that are enough, asked for, and probably pay.
    Gathering first_way(Gathering asked) const {
        const bool enough = wanted_ != nullptr && !needs_all(*wanted_) && index_.bucket_counts();
        const bool pays = has_avx512_ || index_.entries_per_leaf() >= 2 * least_for_buckets;
        if (enough && (asked == Gathering::buckets || (automatic_ && pays))) {
            return Gathering::buckets;
        }
        return asked == Gathering::tails || automatic_ ? second_way() : Gathering::whole;
    }
    Gathering second_way() const {
        if (index_.arrays().pooled) return Gathering::whole;  // tails count on whole trees
        const bool pays = least_ >= 0.6 && index_.entries_per_leaf() >= (has_avx512_ ? 4 : 16);
        return least_ > 0.5 && (pays || !automatic_) ? Gathering::tails : Gathering::whole;
    }

    // From the leaves of a tile of rows to entries, (n_trees, tile_rows).
    void find_entries(std::size_t output, const leaf_t* leaves, std::size_t stride) {
        LeafEntries* found = entries_.data();
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const std::uint32_t* leaf_begin = index_.leaf_begin(output, t);
            for (std::size_t k = 0; k < RowTiles::tile_rows; ++k) {
                const leaf_t leaf = leaves[t * stride + k];
                found[k] = leaf == no_leaf
                               ? LeafEntries{0, 0, leaf}
                               : LeafEntries{leaf_begin[leaf], leaf_begin[leaf + 1], leaf};
            }
            found += RowTiles::tile_rows;
        }
    }

    void gather(std::size_t output, const LeafEntries* entries) {
        constexpr std::size_t step = RowTiles::tile_rows;
        // Ties and odd shapes fail row after row.
        if (automatic_ && n_tried_ >= 64 && 4 * n_failed_ > n_tried_) {
            way_ = way_ == Gathering::buckets ? second_way() : Gathering::whole;
            n_tried_ = n_failed_ = 0;
        }
        ++n_tried_;
        if (way_ == Gathering::buckets) {
            if (gather_buckets(output, row_.survey(output, entries, step))) return;
        } else if (way_ == Gathering::tails) {
            if (row_.gather_tails(output, entries, step, least_)) return;
        }
        row_.gather(output, entries, step);
        if (way_ != Gathering::whole && row_.atoms().size() > 0) ++n_failed_;
    }

    bool gather_buckets(std::size_t output, const BucketMasses& masses) {
        if (masses.n_trees() == 0) return false;
        // A run costs as much as some entries of each leaf.
        const auto gap = static_cast<float>(4 / index_.entries_per_leaf());
        marked_.fill(false);
        mark(masses, *wanted_, marked_);
        masses.list_runs(marked_, gap, runs_);
        row_.gather_buckets(output, runs_);
        return true;
    }

    // Returns the rank of the row's target.
    rank_t gather_without(std::size_t output, const RowLeaves& from, std::uint32_t row) {
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            row_leaves_[t] = from.leaves[t * from.step];
        }
        const RowWeights& kept = *index_.row_weights();
        const rank_t rank = kept.ranks[row * index_.n_outputs() + output];
        row_.gather_without(output, row_leaves_.data(), rank, kept.rows[row]);
        return rank;
    }

    const LeafIndex& index_;
    const LeafSource& source_;
    const Wanted* wanted_;
    Interruption& interruption_;
    std::size_t rows_between_checks_;
    double least_;
    bool automatic_;
    bool has_avx512_;
    Gathering way_;
    std::size_t n_tried_ = 0;
    std::size_t n_failed_ = 0;
    RowBlock block_;
    BucketSet marked_;
    BucketRuns runs_;
    std::vector<leaf_t> row_leaves_;
    std::vector<LeafEntries> entries_;
    Distribution row_;
};

// (n_trees, stride) to (n_rows, n_trees), in squares that stay in cache.
void transpose(const leaf_t* in, std::size_t stride, std::size_t n_rows, std::size_t n_trees,
               leaf_t* out) {
    constexpr std::size_t side = 16;
    for (std::size_t i = 0; i < n_rows; i += side) {
        for (std::size_t t = 0; t < n_trees; t += side) {
            for (std::size_t k = i; k < std::min(n_rows, i + side); ++k) {
                for (std::size_t u = t; u < std::min(n_trees, t + side); ++u) {
                    out[k * n_trees + u] = in[u * stride + k];
                }
            }
        }
    }
}

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

void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               leaf_t* out, Interruption& interruption) {
    const RoutedRows source(forest, rows);
    const std::size_t m = forest.n_trees();
    const Run run{.n_threads = n_threads, .interruption = interruption};
    for_each_block(rows.n_rows, m, source.block_rows(), run, [&](std::size_t max_rows) {
        const auto scratch = std::make_shared<RowBlock>();
        source.reserve(max_rows, *scratch);
        return [&, scratch](std::size_t begin, std::size_t end) {
            auto& leaves = scratch->leaves;
            const std::size_t stride = stride_of(end - begin);
            source.route(begin, end, *scratch, interruption);
            if (node_ids) {
                const std::int32_t* ids = forest.leaf_nodes().data();
                for (std::size_t t = 0; t < m; ++t) {
                    for (std::size_t i = 0; i < stride; ++i) {
                        leaf_t& leaf = leaves[t * stride + i];
                        leaf = ids[leaf];
                    }
                    ids += forest.n_leaves(t);
                }
            }
            transpose(leaves.data(), stride, end - begin, m, out + begin * m);
        };
    });
}

void score(const LeafIndex& index, const LeafSource& source, const std::uint32_t* leave_out,
           const Wanted& wanted, const Run& run) {
    check_leave_out(index, leave_out, source.n_rows());
    const bool observation = needs_observation(wanted);
    const auto make_worker = [&](std::size_t max_rows) {
        const auto worker = std::make_shared<BlockWorker>(index, source, &wanted, run, max_rows);
        return [&, worker](std::size_t begin, std::size_t end) {
            worker->run(
                begin, end, leave_out,
                [&](std::size_t i, std::size_t o, Distribution& row, const RowLeaves& leaves) {
                    if (observation) row.find_observation(o, leaves);
                    return read(row.atoms(), wanted, i * index.n_outputs() + o);
                });
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), run, make_worker);
}

namespace {

// A sparse row of values for each row of `source`, over the atoms of output 0. fill(row, leaves,
// values) fills in those of one row.
template <class T, class Fill>
Sparse<T> sparse_rows(const LeafIndex& index, const LeafSource& source,
                      const std::uint32_t* leave_out, const Run& run, const char* what,
                      const Fill& fill) {
    if (index.n_outputs() != 1) {
        throw std::invalid_argument(std::string(what) + " needs an index of one output");
    }
    check_leave_out(index, leave_out, source.n_rows());
    Sparse<T> found;
    found.indptr.assign(source.n_rows() + 1, 0);
    // Twice through the rows: once for their sizes, once to fill; nothing else grows with them.
    const auto each_row = [&](const auto& use) {
        const auto make_worker = [&](std::size_t max_rows) {
            const auto worker =
                std::make_shared<BlockWorker>(index, source, nullptr, run, max_rows);
            return [&, worker](std::size_t begin, std::size_t end) {
                worker->run(
                    begin, end, leave_out,
                    [&](std::size_t i, std::size_t, Distribution& row, const RowLeaves& leaves) {
                        use(i, row, leaves);
                        return true;
                    });
            };
        };
        for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), run, make_worker);
    };
    each_row([&](std::size_t i, const Distribution& row, const RowLeaves&) {
        found.indptr[i + 1] = static_cast<std::int64_t>(row.atoms().size());
    });
    for (std::size_t i = 0; i < source.n_rows(); ++i) found.indptr[i + 1] += found.indptr[i];
    found.indices.resize(static_cast<std::size_t>(found.indptr.back()));
    found.data.resize(found.indices.size());
    each_row([&](std::size_t i, Distribution& row, const RowLeaves& leaves) {
        const auto at = static_cast<std::size_t>(found.indptr[i]);
        const std::size_t n = row.atoms().size();
        // Leaves that somebody else writes to may hold more in the second pass.
        if (at + n != static_cast<std::size_t>(found.indptr[i + 1])) {
            throw std::invalid_argument("the rows changed while they were read");
        }
        for (std::size_t k = 0; k < n; ++k) {
            found.indices[at + k] = static_cast<std::int32_t>(row.ranks()[k]);
        }
        fill(row, leaves, found.data.data() + at);
    });
    return found;
}

}  // namespace

Sparse<double> weights(const LeafIndex& index, const LeafSource& source,
                       const std::uint32_t* leave_out, const Run& run) {
    const auto fill = [](const Distribution& row, const RowLeaves&, double* weights) {
        const Atoms atoms = row.atoms();
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            weights[k] = static_cast<double>(atoms.cumulative[k + 1] - atoms.cumulative[k]) /
                         static_cast<double>(atoms.total());
        }
    };
    return sparse_rows<double>(index, source, leave_out, run, "weights", fill);
}

Sparse<std::int64_t> proximities(const LeafIndex& index, const LeafSource& source,
                                 const std::uint32_t* leave_out, const Run& run) {
    const auto fill = [](Distribution& row, const RowLeaves& leaves, std::int64_t* counts) {
        row.count_rows(0, leaves, counts);
    };
    return sparse_rows<std::int64_t>(index, source, leave_out, run, "proximities", fill);
}

void count_samples(const LeafIndex& index, const LeafSource& source, const Run& run,
                   std::int64_t* counts) {
    const auto make_worker = [&](std::size_t max_rows) {
        const auto block = std::make_shared<RowBlock>();
        source.reserve(max_rows, *block);
        return [&, block](std::size_t begin, std::size_t end) {
            source.leaves(begin, end, *block, run.interruption);
            const std::size_t stride = stride_of(end - begin);
            for (std::size_t p = 0; p < end - begin; ++p) {
                std::size_t n = 0;
                for (std::size_t t = 0; t < index.n_trees(); ++t) {
                    const leaf_t leaf = block->leaves[t * stride + p];
                    if (leaf == no_leaf) continue;
                    const auto [first, last] = index.entries(0, t, leaf);
                    n += last - first;
                    if (index.arrays().copies.index() == 0) continue;
                    for (std::size_t e = first; e < last; ++e) n += index.copies(e) - 1;
                }
                counts[begin + block->order[p]] = static_cast<std::int64_t>(n);
            }
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), run, make_worker);
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
        for (std::size_t l = 0; l < index_->n_leaves(t); ++l) {
            if (index_->exists(t, static_cast<leaf_t>(l))) continue;
            throw std::invalid_argument("index knows no training row in leaf " + std::to_string(l) +
                                        " of tree " + std::to_string(t) +
                                        "; build it with n_leaves for leaves that may be empty");
        }
    }
}

}  // namespace hdicore
