// forest_docs.hpp: docstrings of Forest
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hdicore::bindings {

inline constexpr const char* forest_doc =
    R"(Decision trees that route rows to leaves, from plain arrays.

The arrays hold the nodes of all trees, one tree after the other, as scikit-learn
stores them; children are counted from the root of their own tree.

Parameters
----------
children_left : (n_nodes,) int
    Child of each node; -1 in both arrays of children marks a leaf.
children_right : (n_nodes,) int
    The same for the right child.
feature : (n_nodes,) int
    Feature that each inner node splits on.
threshold : (n_nodes,) float
    Rows with ``float32(x) <= threshold`` go left.
missing_go_to_left : (n_nodes,) bool
    Where NaN goes.
tree_offsets : (n_trees + 1,) int
    Nodes of tree t are ``[tree_offsets[t], tree_offsets[t + 1])``.
n_features : int
    Columns of a row.
n_threads : int, default=0
    0 means all that this process may use.

Raises
------
ValueError
    If a tree is not a proper binary tree, or an index or threshold is out of range.

Notes
-----
Immutable, so safe to share between threads. Building is O(n_nodes).)";

inline constexpr const char* from_trees_doc =
    R"(Return a forest of trees that are read where they are.

Parameters
----------
trees : sequence of sequences of 5 arrays, each (n_nodes,)
    For each tree its children_left, children_right, feature, threshold and
    missing_go_to_left. Columns of a structured array are not copied if they hold int64,
    float64 and uint8.
n_features : int
    Columns of a row.
n_threads : int, default=0
    0 means all that this process may use.

Returns
-------
Forest
    As the constructor makes it.

Raises
------
ValueError
    As the constructor.)";

inline constexpr const char* apply_doc =
    R"(Node id of the leaf of each row in each tree, as scikit-learn's ``apply``.

Parameters
----------
X : (n, n_features) float32 or float64
    Cast to float32 for routing. NaN is allowed, infinity is not.
n_threads : int, default=0
    0 means all that this process may use.
out : (n, n_trees) int32, optional
    Filled and returned.

Returns
-------
(n, n_trees) int32
    Node ids.)";

inline constexpr const char* forest_arrays_doc =
    R"(Read-only views of the arrays that hold the forest.

Returns
-------
dict of arrays
    The nodes, (n_nodes, 2) uint32, or (n_nodes, 4) if a tree is very large or there are
    more than 256 features; tree_offsets, (n_trees + 1,) int64; leaf_nodes, (n_leaves,)
    int32.)";

inline constexpr const char* leaves_doc =
    R"(Leaf of each row in each tree, counted as `LeafIndex` wants them.

Parameters
----------
X : (n, n_features) float32 or float64
    Cast to float32 for routing. NaN is allowed, infinity is not.
n_threads : int, default=0
    0 means all that this process may use.
out : (n, n_trees) int32, optional
    Filled and returned.

Returns
-------
(n, n_trees) int32
    From 0 to n_leaves[t] - 1 within each tree; ``leaf_nodes`` translates.)";

inline constexpr const char* leaves_of_trees_doc =
    R"(Route rows down trees [first, last) alone: these columns of `leaves`.

Parameters
----------
X : (n, n_features) float32 or float64
    Cast to float32 for routing. NaN is allowed, infinity is not.
first : int
    The first tree.
last : int
    The tree behind the last.
order : (n,) int, optional
    A permutation: rows are routed in this order, fast if neighbours share leaves.
n_threads : int, default=0
    0 means all that this process may use.

Returns
-------
(n, last - first) int32
    In Fortran order.)";

inline constexpr const char* sums_below_parents_doc =
    R"(For each leaf of a tree the sums of values over all leaves below its parent.

Parameters
----------
tree : int
    Which tree.
values : (k, n_leaves[tree]) float
    Values of its leaves.

Returns
-------
(k, n_leaves[tree]) float64
    A root that is a leaf counts as its own parent.)";

}  // namespace hdicore::bindings
