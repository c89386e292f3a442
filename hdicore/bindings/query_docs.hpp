// query_docs.hpp: docstrings of the methods that LeafIndex and Scorer have in common
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace hdicore::bindings {

inline constexpr std::string_view n_threads_doc = R"(n_threads : int, default=0
    0 means all that this process may use.
)";

// Docstrings for one class, whose methods take `rows`: "leaves" or "X".
class QueryDocs {
  public:
    explicit QueryDocs(std::string_view rows)
        : rows_(rows == "X" ? R"(X : (n, n_features) float32 or float64
    Rows, cast to float32 for routing. NaN is allowed, infinity is not.
)"
                            : R"(leaves : (n, n_trees) int
    Leaf of each row in each tree, or -1 for a tree that does not contribute.
)") {}

    std::string mean() const {
        return doc("Mean of the conditional distribution of each row.", "", leave_out, out,
                   R"((n,) or (n, n_outputs) float64
    NaN for rows to which no tree contributes.)");
    }
    std::string intervals() const {
        return doc("Prediction intervals; one merge of a row's leaves serves all levels.",
                   R"(coverage : float or list of k floats, default=0.9
    Shares in (0, 1] of the distribution to hold.
kind : str or list of k str, default="hdi"
    "hdi" (shortest), "equal_tailed", "lower" ([bound, inf]), "upper" ([-inf, bound]) or
    "smoothed_hdi" (the weighted mean of the shortest intervals from each atom, which does
    not jump from row to row): one for all levels, or one for each.
mean : (n,) or (n, n_outputs) float64, optional
    Filled with the means in the same pass.
)",
                   leave_out,
                   R"(out : float64 array of the shape of the result, optional
    Filled and returned.
centres : (n_leaves.sum(),) float, optional
    Numbers of leaves, tree after tree, such as means where the index is of residuals: the
    mean of those of a row is added to both its ends. For an index of one output.
)",
                   R"((n, 2) or (n, 2, k) float64
    Lower and upper ends. With several outputs their axis stands behind n. NaN for rows to
    which no tree contributes.)");
    }
    std::string quantiles() const {
        return doc("Return quantiles of the conditional distribution of each row.",
                   R"(quantiles : float or list of k floats
    Levels in [0, 1].
interpolation : str, default="inverted_cdf"
    The name of any method of `numpy.quantile`.
)",
                   leave_out, out, R"((n,) or (n, k) float64
    With several outputs their axis stands behind n.)");
    }
    std::string cdf() const {
        return doc("P(Y <= y) for each row, or P(Y < y).",
                   R"(y : (n,) or (n, k) float
    One or several points for each row; with several outputs their axis stands behind n.
inclusive : bool, default=True
    Whether y itself counts.
)",
                   leave_out, out, R"(float64 array of the shape of y
    Between 0 and 1.)");
    }
    std::string draws() const {
        return doc("Return draws from the conditional distribution, one for each uniform number.",
                   R"(uniforms : (n,) or (n, k) float
    In [0, 1); with several outputs their axis stands behind n.
)",
                   leave_out, R"(out : float64 array of the shape of uniforms, optional
    Filled and returned; may be `uniforms` itself.
)",
                   R"(float64 array of the shape of uniforms
    Atoms.)");
    }
    std::string weights() const {
        return doc(
            "Return the weights of the atoms, as arrays of a CSR matrix; for an index of one "
            "output.",
            "", leave_out, "", R"(indptr : (n + 1,) int64
    Where the entries of each row begin.
indices : (nnz,) int32
    Position of each entry's atom.
data : (nnz,) float64
    Weights. Rows sum to 1, or are empty where no tree contributes.)");
    }
    std::string proximities() const {
        return doc(
            "How often training rows with the target of each atom count, as arrays of a CSR "
            "matrix.",
            "", leave_out, "", R"(indptr : (n + 1,) int64
    Where the entries of each row begin.
indices : (nnz,) int32
    Position of each entry's atom.
counts : (nnz,) int64
    Summed over trees. With y = 0, 1, 2, ... at the build atoms are training rows. For an
    index of one output.)");
    }
    std::string n_samples() const {
        return doc("How often training rows count in the leaves of each row.", "", "", "",
                   R"((n,) int64
    Summed over trees.)");
    }

  private:
    static constexpr std::string_view leave_out = R"(leave_out : (n,) int, optional
    For each row a training row to exclude. It must lie, once, in each leaf given; -1 in
    `leaves` stands for a tree where it does not. Needs ``keep_row_weights``.
)";
    static constexpr std::string_view out =
        R"(out : float64 array of the shape of the result, optional
    Filled and returned.
)";

    // The parameters in their order: rows, `own`, `leave_out`, n_threads, `last`.
    std::string doc(std::string_view summary, std::string_view own, std::string_view leave_out,
                    std::string_view last, std::string_view returns) const {
        std::string text;
        for (const std::string_view part :
             {summary, std::string_view("\n\nParameters\n----------\n"), rows_, own, leave_out,
              n_threads_doc, last, std::string_view("\nReturns\n-------\n"), returns,
              std::string_view(R"(

Raises
------
ValueError
    If an argument is out of range or of the wrong shape.)")}) {
            text += part;
        }
        return text;
    }

    std::string_view rows_;
};

}  // namespace hdicore::bindings
