// weighted_sample.cpp: fuzzes weighted samples, and the intervals and quantiles read from them
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/weighted_sample.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "input.hpp"
#include "pmf/interval.hpp"
#include "pmf/quantile.hpp"

namespace {

using namespace fuzz;
using namespace hdicore;

bool is_proper(const std::vector<double>& values, const std::vector<double>& weights) {
    const auto finite = [](double x) { return std::isfinite(x); };
    const bool weighty = weights.empty() || std::any_of(weights.begin(), weights.end(),
                                                        [](double w) { return w > 0; });
    return !values.empty() && std::all_of(values.begin(), values.end(), finite) && weighty &&
           std::all_of(weights.begin(), weights.end(),
                       [&](double w) { return finite(w) && w >= 0; });
}

void check_reading(const Pmf& atoms, Input& in) {
    for (const KindOfInterval& each : kinds()) {
        const double coverage = std::max(in.share(), std::numeric_limits<double>::min());
        const Interval found = interval(atoms, coverage, each.kind);
        REQUIRE(found.lower <= found.upper);
        mass_t mass = 0;
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            const bool inside = atoms.values[k] >= found.lower && atoms.values[k] <= found.upper;
            if (inside) mass += atoms.cumulative[k + 1] - atoms.cumulative[k];
        }
        // Levels of tails are rounded.
        const bool is_exempt = !each.holds_coverage || each.kind == Kind::equal_tailed;
        REQUIRE(is_exempt || mass >= atoms.needed(coverage));
    }
    double level = in.share();
    double higher = in.share();
    if (higher < level) std::swap(level, higher);
    for (int k = 0; k <= static_cast<int>(Interpolation::normal_unbiased); ++k) {
        const double low = quantile(atoms, level, static_cast<Interpolation>(k));
        const double high = quantile(atoms, higher, static_cast<Interpolation>(k));
        REQUIRE(atoms.values.front() <= low && low <= high && high <= atoms.values.back());
    }
    REQUIRE(atoms.cdf(atoms.values.back()) == 1);
    const double drawn = atoms.draw(std::min(in.share(), 1 - 0x1p-53));
    REQUIRE(drawn >= atoms.values.front() && drawn <= atoms.values.back());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    const bool weighted = in.one_in(2);
    const bool wild = in.one_in(4);
    std::vector<double> values(in.below(in.one_in(4) ? 64 : 12));
    std::vector<double> weights(weighted ? values.size() : 0);
    for (double& value : values) {
        value = in.real();
        if (!wild && !std::isfinite(value)) value = 1;
    }
    for (double& weight : weights) {
        weight = in.real();
        if (wild) continue;
        weight = std::isfinite(weight) ? std::fabs(weight) : 1;
    }
    WeightedSample sample;
    const std::string reason = refusal([&] { sample.assign(values, weights); });
    REQUIRE(reason.empty() == is_proper(values, weights));
    if (!reason.empty()) return 0;
    const Pmf atoms = sample.pmf();
    REQUIRE(atoms.size() > 0 && atoms.total() == mass_t{1} << wide_shift);
    for (std::size_t k = 0; k < atoms.size(); ++k) {
        REQUIRE(atoms.cumulative[k + 1] > atoms.cumulative[k]);
        REQUIRE(k == 0 || atoms.values[k] > atoms.values[k - 1]);
    }
    check_reading(atoms, in);

    // The order of a sample means nothing.
    std::reverse(values.begin(), values.end());
    std::reverse(weights.begin(), weights.end());
    WeightedSample reversed;
    reversed.assign(values, weights);
    REQUIRE(std::ranges::equal(reversed.pmf().values, atoms.values));
    REQUIRE(std::ranges::equal(reversed.pmf().cumulative, atoms.cumulative));
    return 0;
}
