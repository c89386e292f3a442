// program.cpp: a C++ program that compiles against the installed headers
#include <cstdio>
#include <vector>

#include "base/parallel.hpp"
#include "base/types.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "merge/distribution.hpp"
#include "pmf/hdi.hpp"
#include "pmf/quantile.hpp"
#include "scoring/scorer.hpp"

int main() {
    const std::vector<double> values{0, 1, 2};
    const std::vector<hdicore::mass_t> cumulative{0, 1, 2, 3};
    const hdicore::Pmf atoms{values, cumulative, 1, hdicore::narrow_shift};
    std::printf("%zu %lld\n", atoms.size(), static_cast<long long>(atoms.total()));
}
