// leaf_index_docs.hpp: docstrings of LeafIndex
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hdicore::bindings {

inline constexpr const char* leaf_index_doc =
    R"(Which training targets lie in each leaf, and what they weigh there.

Built from the leaves of the training rows alone: as `Forest.leaves` numbers them,
or, with `from_leaves`, as another library does. In each leaf a row weighs its share
of the leaf's total; a row's weight is the mean over trees (Zhu, Lu, Chen 2019, eq. 7
and 12). Shares are whole numbers of units, 2**shift to a leaf, so sums are exact and
do not depend on their order.

Parameters
----------
leaves : (n, n_trees) int
    Leaf of each training row in each tree, counted from 0.
y : (n,) or (n, n_outputs) float
    Finite targets. With one dimension, results have no axis for outputs.
counts : (n, n_trees) int, optional
    How often a row counts in a tree: bootstrap multiplicities, or 0 to leave it out.
sample_weight : (n,) float, optional
    Weight of each row, times `counts`.
n_leaves : (n_trees,) int, optional
    Leaves of each tree; by default as many as `leaves` names.
keep_row_weights : bool, default=False
    Keep what `leave_out` needs, at 8 bytes per entry.
pooled : bool, default=False
    Rows weigh alike in all leaves, as if those of a query were one sample, so that
    a large leaf counts for more. By default leaves count alike.
max_samples_leaf : int, optional
    Rows to keep in each leaf, with all their draws, chosen at random; by default all.
seed : int, default=0
    Of that choice, which depends on nothing else.
n_threads : int, default=0
    0 means all that this process may use.

Raises
------
ValueError
    If a leaf, count, weight or target is out of range.

Notes
-----
Immutable, so safe to share between threads.
Building is O(n_outputs * n * (log n + n_trees)).)";

inline constexpr const char* from_leaves_doc =
    R"(Index of a forest of any library, from the leaf ids that it reports.

The same as the class, but the leaves are those in which a training row lies, and
a query that names another one is refused: it comes from another forest, or the
training rows are not those of its fit.

Parameters
----------
leaves : (n, n_trees) array of whole numbers
    Leaf id of each training row in each tree, from 0 and below 2**28, of any integer
    or float type and memory layout. Memory grows with the largest id of each tree.
y : (n,) or (n, n_outputs) float
    Finite targets.
counts : (n, n_trees) int, optional
    How often a row counts in a tree.
sample_weight : (n,) float, optional
    Weight of each row, times its counts.
keep_row_weights : bool, default=False
    Keep what `leave_out` needs, at 8 bytes per entry.
pooled : bool, default=False
    Whether leaves count by their size; see the class.
max_samples_leaf : int, optional
    Rows to keep in each leaf; by default all.
seed : int, default=0
    Of the choice of these rows.
n_threads : int, default=0
    0 means all that this process may use.

Returns
-------
LeafIndex
    Which knows the leaves that hold training rows.

Raises
------
ValueError
    As the class.

Examples
--------
>>> from hdicore import LeafIndex
>>> index = LeafIndex.from_leaves([[3, 5], [3, 9], [7, 9]], y=[0.0, 1.0, 5.0])
>>> index.intervals([[3, 9]], coverage=0.7)
array([[0., 1.]])
>>> index.intervals([[3, 6]])
Traceback (most recent call last):
ValueError: leaves[0, 1] must be a leaf of tree 1, in which a training row lies, or -1, got 6)";

inline constexpr const char* from_blocks_doc =
    R"(Index built by blocks of trees: the leaves of all trees are never in memory at once.

Equal to ``LeafIndex(leaves, y, counts=counts, n_leaves=n_leaves, ...)``, in every bit.

Parameters
----------
blocks : iterable of (leaves, counts)
    The trees in order, some at a time: `leaves` (n, k) and `counts` (n, k) or None, as
    in the class; Fortran order saves a copy. Iterated once where that shows that rows
    weigh alike in their leaves, and otherwise again, up to three times: each time with
    the same arrays. Not a generator, unless it is a function that returns one.
y : (n,) or (n, n_outputs) float
    Finite targets.
n_leaves : (n_trees,) int
    Leaves of each tree.
sample_weight : (n,) float, optional
    Weight of each row, times its counts.
keep_row_weights : bool, default=False
    Keep what `leave_out` needs, at 8 bytes per entry.
pooled : bool, default=False
    Whether leaves count by their size; see the class.
max_samples_leaf : int, optional
    Rows to keep in each leaf; by default all.
seed : int, default=0
    Of the choice of these rows.
n_threads : int, default=0
    0 means all that this process may use.

Returns
-------
LeafIndex
    As the class makes it.

Raises
------
TypeError
    If `blocks` cannot be iterated, or an item is no pair.
ValueError
    As the class, and if blocks do not hold n_trees trees in all.

Notes
-----
Needs memory for the index, for a block, and 8 bytes for each row and tree of it.)";

inline constexpr const char* index_arrays_doc =
    R"(Read-only views of the arrays that hold the index.

Returns
-------
dict of arrays
    Row weights are not among them.)";

inline constexpr const char* atoms_doc = R"(Distinct targets of one output.

Parameters
----------
output : int, default=0
    Which output.

Returns
-------
(n_atoms,) float64
    Ascending; a read-only view.)";

}  // namespace hdicore::bindings
