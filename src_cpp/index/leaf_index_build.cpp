// index/leaf_index_build.cpp: groups training rows by leaf and shares each leaf out among its
// targets SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/parallel.hpp"
#include "index/leaf_index.hpp"

namespace hdicore {
namespace {

constexpr count_t largest_total = count_t{1} << 52;

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

// Offsets of the leaves of each tree, after checking every leaf id and count.
std::vector<offset_t> checked_leaf_offsets(const TrainingRows& rows, Interruption& interruption) {
    const std::size_t n = rows.n_rows;
    const std::size_t m = rows.n_trees;
    if (n < 1) refuse("y must hold at least one training row");
    if (n > std::numeric_limits<rank_t>::max()) refuse("y must hold fewer than 2**32 rows");
    if (rows.n_outputs < 1) refuse("y must hold at least one output");
    if (!rows.n_leaves.empty() && rows.n_leaves.size() != m) {
        refuse("n_leaves must give one number for each of " + std::to_string(m) + " trees, got " +
               std::to_string(rows.n_leaves.size()));
    }
    std::vector<std::int64_t> sizes(m, 0);
    std::vector<count_t> totals(m, 0);
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 1024 == 0) interruption.check();
        for (std::size_t t = 0; t < m; ++t) {
            const leaf_t leaf = rows.leaves[i * m + t];
            if (leaf < 0) {
                refuse("leaves[" + std::to_string(i) + ", " + std::to_string(t) +
                       "] must not be negative, got " + std::to_string(leaf));
            }
            sizes[t] = std::max<std::int64_t>(sizes[t], std::int64_t{leaf} + 1);
            if (rows.counts == nullptr) continue;
            const std::int32_t count = rows.counts[i * m + t];
            if (count < 0) {
                refuse("counts[" + std::to_string(i) + ", " + std::to_string(t) +
                       "] must not be negative, got " + std::to_string(count));
            }
            totals[t] += static_cast<count_t>(count);
        }
    }
    std::vector<offset_t> offsets(m + 1, 0);
    for (std::size_t t = 0; t < m; ++t) {
        if (totals[t] > largest_total) refuse("counts of one tree must not exceed 2**52 in all");
        if (!rows.n_leaves.empty()) {
            if (sizes[t] > rows.n_leaves[t]) {
                refuse("leaves names leaf " + std::to_string(sizes[t] - 1) + " of tree " +
                       std::to_string(t) + ", which has " + std::to_string(rows.n_leaves[t]));
            }
            sizes[t] = rows.n_leaves[t];
        }
        if (sizes[t] > most_leaves) {
            refuse("leaves of tree " + std::to_string(t) +
                   " must be small numbers below 2**28, got " + std::to_string(sizes[t] - 1));
        }
        offsets[t + 1] = offsets[t] + sizes[t];
    }
    return offsets;
}

// The rows of one output in ascending order of y, and the rank of each.
struct Order {
    std::vector<std::uint32_t> rows;  // (n_rows,)
    std::vector<rank_t> ranks;        // (n_rows,) rank of rows[p]
    std::vector<double> atoms;        // (n_atoms,)
};

void order_targets(const TrainingRows& in, std::size_t output, Interruption& interruption,
                   Order& order) {
    const auto y = [&](std::uint32_t row) { return in.y[row * in.n_outputs + output]; };
    std::iota(order.rows.begin(), order.rows.end(), 0u);
    for (const std::uint32_t row : order.rows) {
        if (!std::isfinite(y(row))) refuse("y[" + std::to_string(row) + "] is not finite");
    }
    std::uint32_t n_compared = 0;
    std::stable_sort(order.rows.begin(), order.rows.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (++n_compared % 65536 == 0) interruption.check();
        return y(a) < y(b);
    });
    for (const std::uint32_t row : order.rows) {
        // + 0.0 makes one atom of -0.0 and 0.0 whichever comes first.
        if (order.atoms.empty() || order.atoms.back() != y(row))
            order.atoms.push_back(y(row) + 0.0);
        order.ranks.push_back(static_cast<rank_t>(order.atoms.size() - 1));
    }
}

struct Survey {
    count_t n_counted = 0;            // rows, as often as they count
    count_t largest_leaf = 0;         // rows in one leaf, as often as they count
    count_t heaviest_leaf = 0;        // what the rows of one leaf weigh
    std::vector<count_t> n_distinct;  // (n_outputs,) pairs of a leaf and a target in it
};

// Scatters the bits of x (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
std::uint64_t hash(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Groups the rows of one tree by leaf. Scratch memory of one thread, reused from tree to tree.
class TreeEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (n_leaves + 1,)
    std::vector<rank_t> ranks;              // (n_entries,)
    std::vector<mass_t> units;              // (n_entries,)
    std::vector<count_t> weights;           // (n_entries,)

    // For trees of up to max_leaves leaves, for which it allocates nothing later.
    TreeEntries(const TrainingRows& rows, std::span<const count_t> row_weights,
                std::size_t max_leaves, Interruption& interruption)
        : in_(rows), row_weights_(row_weights), interruption_(interruption) {
        leaf_begin.reserve(max_leaves + 1);
        end_.reserve(max_leaves);
        last_.reserve(max_leaves);
        total_.reserve(max_leaves);
        leaf_.resize(in_.n_rows);
        weight_.resize(in_.n_rows);
        ranks.reserve(in_.n_rows);
        units.reserve(in_.n_rows);
        weights.reserve(in_.n_rows);
        if (!row_weights.empty()) copies_.reserve(in_.n_rows);
        if (in_.max_samples_leaf > 0) hashed_.reserve(in_.n_rows);
    }

    // Shares of `pool`, or of each leaf's total if it is 0.
    void group(std::size_t tree, std::size_t n_leaves, const Order& order, int shift,
               count_t pool) {
        collect_column(tree, n_leaves, row_weights_);
        collect_leaves(tree, n_leaves, order);
        share_units(n_leaves, shift, pool);
    }

    // (n_entries,) rows behind each entry, as often as they count.
    std::span<const count_t> copies() const noexcept {
        return row_weights_.empty() ? weights : copies_;
    }

    // Groups rows that weigh alike: each stands as often as it counts, so nothing is merged or
    // shared out. Writes the ranks to `out`.
    template <class Rank>
    void place(std::size_t tree, std::size_t n_leaves, const Order& order, Rank* out) {
        collect_column(tree, n_leaves, {});
        leaf_begin.assign(n_leaves + 1, 0);
        each_row([n = leaf_begin.data() + 1, leaf = leaf_.data(), weight = weight_.data()](
                     std::size_t i) { n[leaf[i]] += static_cast<std::uint32_t>(weight[i]); });
        std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());
        end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        each_row([out, rows = order.rows.data(), ranks = order.ranks.data(), ends = end_.data(),
                  leaf = leaf_.data(), weight = weight_.data()](std::size_t p) {
            const std::uint32_t row = rows[p];
            std::uint32_t& end = ends[leaf[row]];
            for (count_t k = 0; k < weight[row]; ++k) out[end++] = static_cast<Rank>(ranks[p]);
        });
    }

    // What decides how the entries of one tree are stored, in all outputs.
    void survey(std::size_t tree, std::size_t n_leaves, std::span<const Order> orders,
                Survey& found) {
        constexpr auto none = std::numeric_limits<rank_t>::max();
        if (!row_weights_.empty()) {
            collect_column(tree, n_leaves, row_weights_);
            add_up(n_leaves);
            found.heaviest_leaf = *std::max_element(total_.begin(), total_.end());
        }
        collect_column(tree, n_leaves, {});
        for (std::size_t i = 0; i < row_weights_.size(); ++i) {
            if (row_weights_[i] == 0) weight_[i] = 0;
        }
        add_up(n_leaves);
        found.largest_leaf = *std::max_element(total_.begin(), total_.end());
        if (row_weights_.empty()) found.heaviest_leaf = found.largest_leaf;
        found.n_counted = std::accumulate(total_.begin(), total_.end(), count_t{0});
        for (std::size_t o = 0; o < orders.size(); ++o) {
            const Order& order = orders[o];
            last_.assign(n_leaves, none);
            count_t n = 0;
            each_row([&n, rows = order.rows.data(), ranks = order.ranks.data(),
                      weight = weight_.data(), leaf = leaf_.data(),
                      last = last_.data()](std::size_t p) {
                const std::uint32_t row = rows[p];
                if (weight[row] == 0) return;
                rank_t& before = last[leaf[row]];
                n += before != ranks[p];
                before = ranks[p];
            });
            found.n_distinct[o] = n;
        }
    }

  private:
    template <class Use>
    void each_row(const Use& use) {
        in_pieces(in_.n_rows, interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) use(i);
        });
    }

    count_t count_of(std::size_t row, std::size_t tree) const noexcept {
        return in_.counts == nullptr ? 1
                                     : static_cast<count_t>(in_.counts[row * in_.n_trees + tree]);
    }

    void collect_column(std::size_t tree, std::size_t n_leaves,
                        std::span<const count_t> row_weights) {
        const leaf_t* leaves = in_.leaves + tree;
        const std::size_t step = in_.n_trees;
        leaf_t* leaf = leaf_.data();
        count_t* weight = weight_.data();
        if (in_.counts == nullptr) {
            each_row([=](std::size_t i) {
                leaf[i] = leaves[i * step];
                weight[i] = 1;
            });
        } else {
            const std::int32_t* counts = in_.counts + tree;
            each_row([=](std::size_t i) {
                leaf[i] = leaves[i * step];
                weight[i] = static_cast<count_t>(counts[i * step]);
            });
        }
        const count_t* row_weight = row_weights.data();
        if (!row_weights.empty()) each_row([=](std::size_t i) { weight[i] *= row_weight[i]; });
        if (in_.max_samples_leaf > 0) thin_out(tree, n_leaves);
    }

    // Lets only the max_samples_leaf rows of lowest hash weigh in each leaf.
    void thin_out(std::size_t tree, std::size_t n_leaves) {
        hashed_.clear();
        each_row([&](std::size_t i) {
            const bool weighs = row_weights_.empty() || row_weights_[i] > 0;
            if (weighs && weight_[i] > 0)
                hashed_.push_back({hash(hash(in_.seed ^ hash(tree)) ^ i), i});
        });
        std::sort(hashed_.begin(), hashed_.end());
        end_.assign(n_leaves, 0);
        for (const auto& [_, row] : hashed_) {
            std::uint32_t& n = end_[static_cast<std::size_t>(leaf_[row])];
            if (n == in_.max_samples_leaf)
                weight_[row] = 0;
            else
                ++n;
        }
    }

    // What the rows of each leaf weigh, in total_.
    void add_up(std::size_t n_leaves) {
        total_.assign(n_leaves, 0);
        each_row([total = total_.data(), leaf = leaf_.data(),
                  weight = weight_.data()](std::size_t i) { total[leaf[i]] += weight[i]; });
    }

    // Counting sort by leaf of the rows in order of y; equal targets in a leaf become one entry.
    void collect_leaves(std::size_t tree, std::size_t n_leaves, const Order& order) {
        constexpr auto none = std::numeric_limits<rank_t>::max();
        leaf_begin.assign(n_leaves + 1, 0);
        last_.assign(n_leaves, none);
        each_row([&](std::size_t p) {
            if (weight_[order.rows[p]] == 0) return;
            const auto leaf = static_cast<std::size_t>(leaf_[order.rows[p]]);
            leaf_begin[leaf + 1] += last_[leaf] != order.ranks[p];
            last_[leaf] = order.ranks[p];
        });
        std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());

        ranks.assign(leaf_begin.back(), 0);
        weights.assign(leaf_begin.back(), 0);
        copies_.assign(row_weights_.empty() ? 0 : leaf_begin.back(), 0);
        end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        each_row([&](std::size_t p) {
            const std::uint32_t row = order.rows[p];
            if (weight_[row] == 0) return;
            const auto leaf = static_cast<std::size_t>(leaf_[row]);
            const rank_t rank = order.ranks[p];
            std::uint32_t& end = end_[leaf];
            if (end == leaf_begin[leaf] || ranks[end - 1] != rank) ranks[end++] = rank;
            weights[end - 1] += weight_[row];
            if (!row_weights_.empty()) copies_[end - 1] += count_of(row, tree);
        });
    }

    void share_units(std::size_t n_leaves, int shift, count_t pool) {
        units.resize(ranks.size());
        for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
            const std::size_t begin = leaf_begin[leaf];
            const std::size_t n = leaf_begin[leaf + 1] - begin;
            share_out({weights.data() + begin, n}, shift, pool, units.data() + begin);
        }
    }

    const TrainingRows& in_;
    std::span<const count_t> row_weights_;
    Interruption& interruption_;
    std::vector<leaf_t> leaf_;        // (n_rows,)
    std::vector<count_t> weight_;     // (n_rows,)
    std::vector<rank_t> last_;        // (n_leaves,)
    std::vector<std::uint32_t> end_;  // (n_leaves,)
    std::vector<count_t> total_;      // (n_leaves,)
    std::vector<count_t> copies_;     // (n_entries,) if rows have weights
    std::vector<std::pair<std::uint64_t, std::size_t>> hashed_;  // (n_rows,) if leaves are thinned
};

// Whether the lightest row's share of `total` is less than one unit of narrow_shift.
bool lacks_a_unit(std::span<const count_t> row_weights, count_t total) noexcept {
    count_t lightest = total;
    for (const count_t weight : row_weights) {
        if (weight > 0) lightest = std::min(lightest, weight);
    }
    return total > 0 && share(lightest, total, narrow_shift) == 0;
}

std::vector<count_t> checked_row_weights(const TrainingRows& rows) {
    if (rows.sample_weight == nullptr) return {};
    const std::span weights(rows.sample_weight, rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            refuse("sample_weight[" + std::to_string(i) +
                   "] must be finite and not negative, got " + std::to_string(weights[i]));
        }
    }
    std::int32_t copies = 1;
    if (rows.counts != nullptr) {
        copies = *std::max_element(rows.counts, rows.counts + rows.n_rows * rows.n_trees);
    }
    return whole_weights(weights, static_cast<std::size_t>(std::max(copies, 1)));
}

// A bit for each leaf: whether a row lies in it.
std::vector<std::uint64_t> seen_leaves(const TrainingRows& rows,
                                       std::span<const offset_t> leaf_offsets,
                                       Interruption& interruption) {
    std::vector<std::uint64_t> seen((static_cast<std::size_t>(leaf_offsets.back()) + 63) / 64, 0);
    in_pieces(rows.n_rows * rows.n_trees, interruption, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const auto bit =
                static_cast<std::size_t>(leaf_offsets[i % rows.n_trees] + rows.leaves[i]);
            seen[bit / 64] |= std::uint64_t{1} << bit % 64;
        }
    });
    return seen;
}

void check_options(const TrainingRows& rows, bool keep_row_weights) {
    if (keep_row_weights && rows.max_samples_leaf > 0) {
        refuse(
            "max_samples_leaf must not be given with keep_row_weights: a row that was not kept in "
            "a leaf cannot be left out of it");
    }
}

}  // namespace

LeafIndex::LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                     Interruption& interruption) {
    check_number_of_trees(rows.n_trees);
    check_options(rows, keep_row_weights);
    const std::size_t n_trees = rows.n_trees;
    const std::size_t n_outputs = rows.n_outputs;
    std::vector<offset_t> leaf_offsets = checked_leaf_offsets(rows, interruption);
    const auto n_leaves = static_cast<std::size_t>(leaf_offsets.back());
    const auto n_leaves_of = [&](std::size_t t) {
        return static_cast<std::size_t>(leaf_offsets[t + 1] - leaf_offsets[t]);
    };
    std::size_t max_leaves = 0;
    for (std::size_t t = 0; t < n_trees; ++t) max_leaves = std::max(max_leaves, n_leaves_of(t));
    std::vector<count_t> row_weights = checked_row_weights(rows);

    std::vector<Order> orders(n_outputs);
    const auto make_sorter = [&]() -> Worker {
        return [&](std::size_t o) { order_targets(rows, o, interruption, orders[o]); };
    };
    for (Order& order : orders) {
        order.rows.resize(rows.n_rows);
        order.ranks.reserve(rows.n_rows);
        order.atoms.reserve(rows.n_rows);
    }
    parallel_for(n_outputs, n_threads, make_sorter, interruption);
    std::vector<offset_t> atom_offsets{0};
    std::vector<double> atoms;
    std::size_t most_atoms = 0;
    for (const Order& order : orders) {
        atoms.insert(atoms.end(), order.atoms.begin(), order.atoms.end());
        atom_offsets.push_back(static_cast<offset_t>(atoms.size()));
        most_atoms = std::max(most_atoms, order.atoms.size());
    }

    // Calls use(entries, block) for blocks of trees, with scratch memory of its own on each thread.
    const auto in_parallel = [&](std::size_t n_blocks, const auto& use) {
        const auto make_worker = [&]() -> Worker {
            const auto entries =
                std::make_shared<TreeEntries>(rows, row_weights, max_leaves, interruption);
            return [&, entries](std::size_t block) { use(*entries, block); };
        };
        parallel_for(n_blocks, n_threads, make_worker, interruption);
    };

    std::vector<Survey> surveys(n_trees);
    for (Survey& survey : surveys) survey.n_distinct.assign(n_outputs, 0);
    in_parallel(n_trees, [&](TreeEntries& entries, std::size_t t) {
        entries.survey(t, n_leaves_of(t), orders, surveys[t]);
    });
    count_t n_counted = 0;
    count_t n_distinct = 0;
    count_t largest_leaf = 0;
    count_t heaviest_leaf = 0;
    for (const Survey& tree : surveys) {
        n_counted += tree.n_counted;
        n_distinct = std::accumulate(tree.n_distinct.begin(), tree.n_distinct.end(), n_distinct);
        largest_leaf = std::max(largest_leaf, tree.largest_leaf);
        heaviest_leaf = std::max(heaviest_leaf, tree.heaviest_leaf);
    }
    const count_t pool = rows.pooled ? std::bit_ceil(std::max<count_t>(heaviest_leaf, 1)) : 0;
    const bool wide = largest_leaf >= ((count_t{1} << 26) + n_trees - 1) / n_trees ||
                      lacks_a_unit(row_weights, std::max(heaviest_leaf, pool));
    const int shift = wide ? wide_shift : narrow_shift;
    has_ties_ = n_counted * n_outputs > n_distinct;
    // Where many rows of a leaf share a target, merging them saves more than units cost.
    const bool alike = row_weights.empty() && !keep_row_weights && !wide && !rows.pooled &&
                       largest_leaf <= most_alike && n_counted * n_outputs <= 2 * n_distinct;

    std::vector<offset_t> tree_begin(n_outputs * n_trees + 1, 0);
    for (std::size_t block = 0; block < n_outputs * n_trees; ++block) {
        const Survey& tree = surveys[block % n_trees];
        tree_begin[block + 1] =
            tree_begin[block] +
            static_cast<offset_t>(alike ? tree.n_counted : tree.n_distinct[block / n_trees]);
    }

    const auto n_entries = static_cast<std::size_t>(tree_begin.back());
    const bool narrow_ranks = most_atoms <= std::size_t{1} << 16;
    const bool has_copies = has_ties_ && !alike;
    const bool narrow_copies = largest_leaf <= std::numeric_limits<std::uint8_t>::max();
    std::vector<std::uint32_t> leaf_begin(n_outputs * (n_leaves + n_trees));
    std::vector<std::uint16_t> short_ranks(narrow_ranks ? n_entries : 0);
    std::vector<rank_t> ranks(narrow_ranks ? 0 : n_entries);
    std::vector<std::uint32_t> narrow_units(wide || alike ? 0 : n_entries);
    std::vector<std::uint64_t> wide_units(wide ? n_entries : 0);
    std::vector<std::uint8_t> few_copies(has_copies && narrow_copies ? n_entries : 0);
    std::vector<std::uint32_t> many_copies(has_copies && !narrow_copies ? n_entries : 0);
    std::vector<count_t> entry_weights(keep_row_weights ? n_entries : 0);
    in_parallel(n_outputs * n_trees, [&](TreeEntries& entries, std::size_t block) {
        const std::size_t t = block % n_trees;
        const std::size_t n = n_leaves_of(t);
        const Order& order = orders[block / n_trees];
        const offset_t at = tree_begin[block];
        const auto store = [at](const auto& from, auto& to) {
            if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + at);
        };
        if (alike) {
            narrow_ranks ? entries.place(t, n, order, short_ranks.data() + at)
                         : entries.place(t, n, order, ranks.data() + at);
        } else {
            entries.group(t, n, order, shift, pool);
            store(entries.ranks, short_ranks);
            store(entries.ranks, ranks);
            store(entries.units, narrow_units);
            store(entries.units, wide_units);
            store(entries.copies(), few_copies);
            store(entries.copies(), many_copies);
            store(entries.weights, entry_weights);
        }
        const std::size_t slot =
            block / n_trees * (n_leaves + n_trees) + static_cast<std::size_t>(leaf_offsets[t]) + t;
        std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
                  leaf_begin.begin() + static_cast<offset_t>(slot));
    });

    if (keep_row_weights) {
        std::vector<rank_t> row_ranks(rows.n_rows * n_outputs);
        for (std::size_t o = 0; o < n_outputs; ++o) {
            for (std::size_t p = 0; p < rows.n_rows; ++p) {
                row_ranks[orders[o].rows[p] * n_outputs + o] = orders[o].ranks[p];
            }
        }
        if (row_weights.empty()) row_weights.assign(rows.n_rows, 1);
        row_weights_ = RowWeights{Array(std::move(entry_weights)), Array(std::move(row_ranks)),
                                  Array(std::move(row_weights)), pool};
    }
    if (rows.only_seen) arrays_.seen = Array(seen_leaves(rows, leaf_offsets, interruption));
    arrays_.leaf_offsets = Array(std::move(leaf_offsets));
    arrays_.atom_offsets = Array(std::move(atom_offsets));
    arrays_.atoms = Array(std::move(atoms));
    arrays_.tree_begin = Array(std::move(tree_begin));
    arrays_.leaf_begin = Array(std::move(leaf_begin));
    if (narrow_ranks) arrays_.ranks = Array(std::move(short_ranks));
    if (!narrow_ranks) arrays_.ranks = Array(std::move(ranks));
    if (wide) arrays_.units = Array(std::move(wide_units));
    if (!wide && !alike) arrays_.units = Array(std::move(narrow_units));
    if (has_copies && narrow_copies) arrays_.copies = Array(std::move(few_copies));
    if (has_copies && !narrow_copies) arrays_.copies = Array(std::move(many_copies));
    arrays_.pooled = rows.pooled;
    note_leaf_sizes(interruption);
    count_buckets(n_threads, interruption);
}

}  // namespace hdicore
