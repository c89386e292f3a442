// forest/prune.cpp: finds the splits to keep, tree by tree, and lays out what is left
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/prune.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "forest/tree_layout.hpp"

namespace hdicore {
namespace {

// Sums of two sizes that are no larger fit count_t.
constexpr std::int64_t max_size = std::int64_t{1} << 62;

void check_arguments(const Forest& forest, std::span<const std::int64_t> leaf_sizes,
                     std::int64_t min_size) {
    if (leaf_sizes.size() != forest.n_leaves()) {
        refuse("leaf_sizes must have " + std::to_string(forest.n_leaves()) +
               " elements, one for each leaf of the forest, got " +
               std::to_string(leaf_sizes.size()));
    }
    for (std::size_t leaf = 0; leaf < leaf_sizes.size(); ++leaf) {
        if (leaf_sizes[leaf] >= 0) continue;
        refuse("leaf_sizes[" + std::to_string(leaf) + "] must not be negative, got " +
               std::to_string(leaf_sizes[leaf]));
    }
    if (min_size < 1 || min_size > max_size) {
        refuse("min_size must lie in [1, 2**62], got " + std::to_string(min_size));
    }
}

// Where the nodes and leaves of each tree begin.
struct Offsets {
    std::vector<offset_t> nodes{0};   // (n_trees + 1,)
    std::vector<offset_t> leaves{0};  // (n_trees + 1,)

    void add(offset_t n_splits) {
        nodes.push_back(nodes.back() + 2 * n_splits + 1);
        leaves.push_back(leaves.back() + n_splits + 1);
    }
};

// One tree, and what is found out about it.
template <class Node>
struct TreeToPrune {
    const Node* nodes;  // (n_nodes,)
    std::size_t n_nodes;
    const std::int64_t* leaf_sizes;  // (n_leaves,)
    std::uint8_t* is_split;          // (n_nodes,) whether a node stays a split
    leaf_t* new_leaves;              // (n_leaves,)
    std::int32_t* leaf_nodes;        // (n_leaves,) of the pruned tree; only the first are filled

    std::size_t n_leaves() const noexcept { return (n_nodes + 1) / 2; }
};

// Scratch memory of one thread, for trees of up to n nodes.
struct Subtrees {
    explicit Subtrees(std::size_t n)
        : sizes(std::make_unique<count_t[]>(n)),
          first_leaf(std::make_unique<std::uint32_t[]>(n)),
          n_splits(std::make_unique_for_overwrite<std::int32_t[]>(n / 2 + 1)),
          begins_leaf(std::make_unique_for_overwrite<std::uint8_t[]>(n / 2 + 1)) {}

    std::unique_ptr<count_t[]> sizes;             // (n_nodes,) no more than min_size
    std::unique_ptr<std::uint32_t[]> first_leaf;  // (n_nodes,) the leftmost below each
    std::unique_ptr<std::int32_t[]> n_splits;     // (n_leaves,) kept ones whose leftmost leaf it is
    std::unique_ptr<std::uint8_t[]> begins_leaf;  // (n_leaves,) whether a new one begins with it
};

// Adds up sizes from the leaves to the root: children lie behind their parents. Whether a node is a
// leaf is as good as random, so that nothing branches on it.
template <class Node>
void judge_splits(const TreeToPrune<Node>& tree, count_t min_size, Subtrees& below,
                  Interruption& interruption) {
    const std::size_t n = tree.n_nodes;
    in_pieces(n, interruption, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = n - begin; i-- > n - end;) {
            const Node node = tree.nodes[i];
            const std::size_t left = node.left();
            const bool is_leaf = left == i;
            const std::size_t right = left + !is_leaf;
            const std::uint32_t leaf = is_leaf ? node.leaf() : 0;
            const auto own = static_cast<count_t>(tree.leaf_sizes[leaf]);
            const count_t smaller = std::min(below.sizes[left], below.sizes[right]);
            const count_t sum = below.sizes[left] + below.sizes[right];
            below.first_leaf[i] = is_leaf ? leaf : below.first_leaf[left];
            below.sizes[i] = std::min(is_leaf ? own : sum, min_size);
            tree.is_split[i] = !is_leaf & (smaller >= min_size);
        }
    });
}

// Drops the splits below nodes that become leaves. Each that stays divides its leaves in two: new
// ones begin where its right child's do. Returns how many stay.
template <class Node>
offset_t keep_splits(const TreeToPrune<Node>& tree, Subtrees& below, Interruption& interruption) {
    std::fill_n(below.n_splits.get(), tree.n_leaves(), 0);
    std::fill_n(below.begins_leaf.get(), tree.n_leaves(), std::uint8_t{0});
    offset_t n_kept = 0;
    in_pieces(tree.n_nodes, interruption, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t left = tree.nodes[i].left();
            const std::size_t right = left + (left != i);
            const std::uint8_t stays = tree.is_split[i];
            tree.is_split[left] &= stays;
            tree.is_split[right] &= stays;
            if (stays == 0) continue;
            ++n_kept;
            ++below.n_splits[below.first_leaf[i]];
            below.begins_leaf[below.first_leaf[right]] = 1;
        }
    });
    return n_kept;
}

// Numbers the new leaves from left to right, and their nodes depth first: before a leaf come the
// leaves to its left and the splits whose leftmost leaf is no further to the right.
template <class Node>
void number_leaves(const TreeToPrune<Node>& tree, const Subtrees& below) {
    leaf_t now = 0;
    std::int32_t n_splits = below.n_splits[0];
    tree.new_leaves[0] = 0;
    tree.leaf_nodes[0] = n_splits;
    for (std::size_t leaf = 1; leaf < tree.n_leaves(); ++leaf) {
        if (below.begins_leaf[leaf] != 0) {
            ++now;
            n_splits += below.n_splits[leaf];
            tree.leaf_nodes[now] = now + n_splits;
        }
        tree.new_leaves[leaf] = now;
    }
}

// Prunes the trees of one forest: first finds what is left of each, then lays it out.
template <class Node>
class Pruning {
  public:
    Pruning(const Forest& forest, const Array<Node>& nodes,
            std::span<const std::int64_t> leaf_sizes)
        : forest_(forest),
          nodes_(nodes),
          leaf_sizes_(leaf_sizes),
          is_split_(std::make_unique_for_overwrite<std::uint8_t[]>(nodes.size())),
          new_leaves_(forest.n_leaves()),
          leaf_nodes_(std::make_unique_for_overwrite<std::int32_t[]>(forest.n_leaves())) {
        for (std::size_t t = 0; t < forest.n_trees(); ++t) {
            old_.add(static_cast<offset_t>(forest.n_leaves(t)) - 1);
            largest_ = std::max(largest_, n_nodes(old_, t));
        }
    }

    void find_leaves(std::int64_t min_size, unsigned n_threads, Interruption& interruption) {
        std::vector<offset_t> n_splits(forest_.n_trees());
        const auto make_worker = [&]() -> Worker {
            const auto below = std::make_shared<Subtrees>(largest_);
            return [&, below](std::size_t t) {
                const TreeToPrune<Node> tree = tree_number(t);
                judge_splits(tree, static_cast<count_t>(min_size), *below, interruption);
                n_splits[t] = keep_splits(tree, *below, interruption);
                number_leaves(tree, *below);
                if (2 * static_cast<std::size_t>(n_splits[t]) + 1 < tree.n_nodes) return;
                std::copy_n(forest_.leaf_nodes().data() + old_.leaves[t], tree.n_leaves(),
                            tree.leaf_nodes);
            };
        };
        parallel_for(forest_.n_trees(), n_threads, make_worker, interruption);
        for (const offset_t n : n_splits) now_.add(n);
    }

    PrunedForest take(unsigned n_threads, Interruption& interruption) {
        Nodes nodes = fits_narrow() ? Nodes(lay_out<NarrowNode>(n_threads, interruption))
                                    : Nodes(lay_out<WideNode>(n_threads, interruption));
        std::vector<std::int32_t> leaf_nodes;
        leaf_nodes.reserve(static_cast<std::size_t>(now_.leaves.back()));
        for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
            const std::int32_t* first = leaf_nodes_.get() + old_.leaves[t];
            leaf_nodes.insert(leaf_nodes.end(), first,
                              first + (now_.leaves[t + 1] - now_.leaves[t]));
        }
        return {Forest(std::move(nodes), Array(std::move(now_.nodes)),
                       Array(std::move(leaf_nodes), interruption),
                       static_cast<std::int64_t>(forest_.n_features()), {}, Checks::now, n_threads,
                       interruption),
                std::move(new_leaves_)};
    }

  private:
    static std::size_t n_nodes(const Offsets& offsets, std::size_t tree) {
        return static_cast<std::size_t>(offsets.nodes[tree + 1] - offsets.nodes[tree]);
    }

    TreeToPrune<Node> tree_number(std::size_t t) {
        const offset_t leaf = old_.leaves[t];
        return {.nodes = nodes_.data() + old_.nodes[t],
                .n_nodes = n_nodes(old_, t),
                .leaf_sizes = leaf_sizes_.data() + leaf,
                .is_split = is_split_.get() + old_.nodes[t],
                .new_leaves = new_leaves_.data() + leaf,
                .leaf_nodes = leaf_nodes_.get() + leaf};
    }

    bool fits_narrow() const noexcept {
        std::size_t largest = 0;
        for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
            largest = std::max(largest, n_nodes(now_, t));
        }
        return do_fit<NarrowNode>(largest, forest_.n_features());
    }

    template <class Now>
    Array<Now> lay_out(unsigned n_threads, Interruption& interruption) {
        std::vector<Now> nodes(static_cast<std::size_t>(now_.nodes.back()));
        const auto make_worker = [&]() -> Worker {
            const std::shared_ptr<Visit[]> pending(new Visit[max_pending(largest_)]);
            return [&, pending](std::size_t t) {
                const TreeToPrune<Node> tree = tree_number(t);
                const auto node_at = [&tree](std::size_t old) {
                    if (tree.is_split[old] != 0) return tree.nodes[old];
                    std::size_t at = old;
                    while (tree.nodes[at].left() != at) at = tree.nodes[at].left();
                    const leaf_t leaf = tree.new_leaves[tree.nodes[at].leaf()];
                    return Node::at_leaf(static_cast<std::uint32_t>(old),
                                         static_cast<std::uint32_t>(leaf));
                };
                cut_into_runs(node_at, pending.get(), nodes.data() + now_.nodes[t]);
            };
        };
        parallel_for(forest_.n_trees(), n_threads, make_worker, interruption);
        return Array(std::move(nodes), interruption);
    }

    const Forest& forest_;
    const Array<Node>& nodes_;
    std::span<const std::int64_t> leaf_sizes_;
    Offsets old_;
    Offsets now_;
    std::size_t largest_ = 0;                     // nodes of a tree
    std::unique_ptr<std::uint8_t[]> is_split_;    // (n_nodes,)
    std::vector<leaf_t> new_leaves_;              // (n_leaves,)
    std::unique_ptr<std::int32_t[]> leaf_nodes_;  // (n_leaves,) those of a tree begin at its own
};

}  // namespace

PrunedForest prune(const Forest& forest, std::span<const std::int64_t> leaf_sizes,
                   std::int64_t min_size, unsigned n_threads, Interruption& interruption) {
    check_arguments(forest, leaf_sizes, min_size);
    return std::visit(
        [&](const auto& nodes) {
            Pruning pruning(forest, nodes, leaf_sizes);
            pruning.find_leaves(min_size, n_threads, interruption);
            return pruning.take(n_threads, interruption);
        },
        forest.nodes());
}

}  // namespace hdicore
