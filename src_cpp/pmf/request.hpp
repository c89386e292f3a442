// pmf/request.hpp: what a caller asks of each row's distribution, what that needs, and its answers
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/matrix.hpp"
#include "pmf/interval.hpp"
#include "pmf/pmf.hpp"
#include "pmf/priced_intervals.hpp"
#include "pmf/quantile.hpp"
#include "pmf/regions.hpp"

namespace hdicore {

// Each statistic is a struct: where its results go, and how they are computed for one row and
// output, number `at` of all. Pmf is enough for each. One that PartialPmf may be enough for has
// three functions more:
//
//   bool read_partial(pmf, at)     false if the answer lies in a gap; results are then undefined
//   double min_share()             what it needs, as min_share of an interval; 0: every atom
//   void mark(masses, marked)      marks the buckets that may hold the answer
//
// A statistic without these is read from a Pmf only: `needs` and `read_partial` below see to it.
// One that is the same for rows of one distribution `is_copied`. Others than `results` have
//
//   void fill_others(at)           writes what there is without an atom
//   void copy_others(from, at)     writes the results of number `from` to `at`

// The mean is none of these: it is found from the means of leaves, without a distribution.
struct MeanRequest {
    std::span<double> results{};  // (n_rows * n_outputs,)

    bool is_empty() const noexcept { return results.empty(); }
};

struct IntervalRequest {
    std::span<const double> coverages{};  // (n_levels,) in (0, 1]
    Kind kind = Kind::hdi;
    Matrix<double> results{};           // (n_rows * n_outputs, 2 * n_levels) lower ends first
    std::span<const Kind> kinds{};      // (n_levels,) or none: `kind` for all
    std::span<const double> centres{};  // (n_leaves,) or none; see `score`

    static constexpr bool is_copied = true;
    bool is_empty() const noexcept { return coverages.empty(); }
    void read(const Pmf& pmf, std::size_t at) const noexcept;
    [[nodiscard]] bool read_partial(const PartialPmf& pmf, std::size_t at) const noexcept;
    double min_share() const noexcept;
    void mark(const BucketMasses& masses, BucketSet& marked) const noexcept;
    // Adds a number to the ends of row and output number `at`.
    void shift(std::size_t at, double by) const noexcept;

  private:
    Kind kind_of(std::size_t level) const noexcept { return kinds.empty() ? kind : kinds[level]; }
    void write(std::size_t at, std::size_t level, const Interval& interval) const noexcept;
};

struct QuantileRequest {
    std::span<const double> levels{};  // (n_levels,) in [0, 1]
    Interpolation interpolation = Interpolation::inverted_cdf;
    Matrix<double> results{};  // (n_rows * n_outputs, n_levels)

    static constexpr bool is_copied = true;
    bool is_empty() const noexcept { return levels.empty(); }
    void read(const Pmf& pmf, std::size_t at) const noexcept;
    [[nodiscard]] bool read_partial(const PartialPmf& pmf, std::size_t at) const noexcept;
    double min_share() const noexcept;
    void mark(const BucketMasses& masses, BucketSet& marked) const noexcept;
    void copy(std::size_t from, std::size_t at) const noexcept;
};

struct CdfRequest {
    Matrix<const double> points{};  // (n_rows * n_outputs, n_points)
    bool inclusive = true;          // P(Y <= point), or P(Y < point)
    Matrix<double> results{};       // (n_rows * n_outputs, n_points)

    bool is_empty() const noexcept { return results.empty(); }
    void read(const Pmf& pmf, std::size_t at) const noexcept;
};

struct DrawRequest {
    // (n_rows * n_outputs, n_draws) uniforms in [0, 1), replaced by draws
    Matrix<double> results{};

    bool is_empty() const noexcept { return results.empty(); }
    void read(const Pmf& pmf, std::size_t at) const noexcept;
};

struct PricedRequest {
    std::span<const double> prices{};  // (n_prices,) above 0, of the whole distribution
    double min_coverage = 0;           // in [0, 1], to be held at every price
    Matrix<double> results{};          // (n_rows * n_outputs, 2 * n_prices) lower ends first
    Matrix<mass_t> units{};            // (n_rows * n_outputs, n_prices) masses; 0 without an atom
    Matrix<double> shares{};           // the same as shares of the row's total, or none

    static constexpr bool is_copied = true;
    bool is_empty() const noexcept { return prices.empty(); }
    void fill_others(std::size_t at) const noexcept;
    void read(const Pmf& pmf, std::size_t at) const noexcept;
    [[nodiscard]] bool read_partial(const PartialPmf& pmf, std::size_t at) const noexcept;
    // As an HDI of that coverage: no interval that holds it has its ends elsewhere.
    double min_share() const noexcept { return min_coverage; }
    void mark(const BucketMasses& masses, BucketSet& marked) const noexcept;
    void copy_others(std::size_t from, std::size_t at) const noexcept;

  private:
    template <class AnyPmf>
    bool read_any(const AnyPmf& pmf, std::size_t at) const noexcept;
};

struct RegionRequest {
    double coverage = 0;  // in (0, 1]; 0: nothing is asked
    RegionShape shape{};
    Matrix<double> results{};  // (n_rows * n_outputs, 2 * max_pieces) ends, NaN behind the last
    std::span<std::int64_t> n_pieces{};  // (n_rows * n_outputs,) 0 without an atom
    std::span<double> bounds{};          // (n_rows * n_outputs,) lower bounds of the least cost

    static constexpr bool is_copied = true;
    bool is_empty() const noexcept { return coverage == 0; }
    void fill_others(std::size_t at) const noexcept;
    void read(const Pmf& pmf, std::size_t at, RegionSearch& search) const noexcept;
    void copy_others(std::size_t from, std::size_t at) const noexcept;
};

// All that is asked of each row; what is empty is not read. One merge of the row's leaves serves
// all of it. Results are NaN where no tree contributes.
struct Request {
    MeanRequest mean{};
    IntervalRequest intervals{};
    QuantileRequest quantiles{};
    CdfRequest cdf{};
    DrawRequest draws{};
    PricedRequest priced{};
    RegionRequest regions{};
};

// How much of a distribution a request needs.
struct Needs {
    bool nothing = true;  // all that is asked, if anything, is the mean
    bool every_atom = false;
    // Otherwise the two tails that hold more than 1 - min_share each are enough, if it exceeds 1/2.
    double min_share = 1;
    bool few_buckets = true;   // the buckets marked hold far fewer atoms than all
    bool observation = false;  // Pmf::observation
};
Needs needs(const Request& request) noexcept;

// Marks the buckets that may hold the answers. The request must not need every atom.
void mark(const BucketMasses& masses, const Request& request, BucketSet& marked) noexcept;

// Writes the results of row and output number `at`, NaN if the distribution has no atom. Regions
// need a search.
void read(const Pmf& pmf, const Request& request, std::size_t at,
          RegionSearch* search = nullptr) noexcept;

// Whether all of a request can be copied.
bool is_copied(const Request& request) noexcept;
// Writes the results of number `from` to `at`, which has the same distribution.
void copy(const Request& request, std::size_t from, std::size_t at) noexcept;

// As read; false, with results undefined, if a statistic needs every atom or what lies in a gap.
[[nodiscard]] bool read_partial(const PartialPmf& pmf, const Request& request,
                                std::size_t at) noexcept;

}  // namespace hdicore
