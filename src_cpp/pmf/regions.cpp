// pmf/regions.cpp: the recursion at a price, the search of the price, and the repair of its result
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/regions.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hdicore {

RegionSearch::RegionSearch(std::size_t max_atoms, const RegionGrid* grid) {
    const std::size_t n = grid == nullptr ? max_atoms : grid->n_bins();
    values_.resize(n);
    steps_.resize(n);
    trail_.resize(n);
    if (grid == nullptr) return;
    bins_.resize(n);
    smoothed_.resize(n);
    binned_.resize(n + 1);
}

Region RegionSearch::find(const Pmf& pmf, mass_t needed, const RegionShape& shape) noexcept {
    needed_ = needed;
    max_pieces_ = shape.max_pieces;
    const double unit = shape.grid == nullptr ? take_atoms(pmf) : take_bins(pmf, *shape.grid);
    steps_[0] = 0;
    for (std::size_t i = 1; i < n_atoms_; ++i) steps_[i] = values_[i] - values_[i - 1];
    // A gap that costs more than any interval is never paid, however much it costs.
    const double widest = (values_[n_atoms_ - 1] - values_[0]) + thickness_;
    gap_ = std::min(shape.gap / unit, 2 * widest);

    const std::span values =
        shape.grid == nullptr ? pmf.values : std::span(values_).first(n_atoms_);
    const std::span cumulative(cumulative_, n_atoms_ + 1);
    const Interval hdi = shortest_interval(Pmf(values, cumulative, pmf.n_trees, pmf.shift), needed);
    const double of_hdi = shape.grid == nullptr ? hdi.upper / unit - hdi.lower / unit
                                                : (hdi.upper - hdi.lower) + thickness_;

    Choice best;
    // The HDI may be wider than the least width: widths tie, and a quarter is for their rounding.
    const double tied = 1.25 * tie_tolerance * (pmf.max_abs() / unit);
    double bound = shape.grid == nullptr ? std::max(of_hdi - tied, 0.0) : of_hdi;
    if (max_pieces_ > 1) search(best, bound);

    Region region;
    const bool use_hdi = best.n < 2 || of_hdi <= best.cost;
    region.bound = std::min(bound, use_hdi ? of_hdi : best.cost) * unit;
    if (use_hdi) {
        region.n_pieces = 1;
        region.pieces[0] = hdi;
    } else {
        region.n_pieces = best.n;
        for (std::size_t q = 0; q < best.n; ++q) {
            const Piece piece = best.pieces[q];
            region.pieces[q] = {values[piece.first], values[piece.last]};
        }
    }
    if (shape.grid == nullptr) return region;
    for (Interval& piece : std::span(region.pieces).first(region.n_pieces)) {
        piece.lower = shape.grid->edge(static_cast<std::size_t>(piece.lower));
        piece.upper = shape.grid->edge(static_cast<std::size_t>(piece.upper) + 1);
    }
    return region;
}

double RegionSearch::take_atoms(const Pmf& pmf) noexcept {
    n_atoms_ = pmf.size();
    cumulative_ = pmf.cumulative.data();
    thickness_ = 0;
    // The largest atoms become about 2^100: no product of a price and a mass overflows.
    int exponent = 0;
    std::frexp(pmf.max_abs(), &exponent);
    const double scale = std::ldexp(1.0, std::min(1000, 100 - exponent));
    for (std::size_t i = 0; i < n_atoms_; ++i) values_[i] = pmf.values[i] * scale;
    return 1 / scale;
}

double RegionSearch::take_bins(const Pmf& pmf, const RegionGrid& grid) noexcept {
    grid.masses(pmf, bins_, smoothed_);
    n_atoms_ = 0;
    binned_[0] = 0;
    for (std::size_t b = 0; b < bins_.size(); ++b) {
        if (bins_[b] == 0) continue;
        values_[n_atoms_] = static_cast<double>(b);
        binned_[n_atoms_ + 1] = binned_[n_atoms_] + bins_[b];
        ++n_atoms_;
    }
    cumulative_ = binned_.data();
    thickness_ = 1;
    return grid.width();
}

// The corners of the lower hull of cost by mass that the mass lies between, and then the region of
// the dearer one, repaired.
void RegionSearch::search(Choice& best, double& bound) noexcept {
    Choice low, found;
    at_price(0, low);
    bound = low.cost;
    if (low.mass >= needed_) {
        best = low;
    } else {
        of_all(best);
        for (std::size_t k = 0; k < max_scans; ++k) {
            const double price = (best.cost - low.cost) / static_cast<double>(best.mass - low.mass);
            at_price(price, found);
            const double missing = static_cast<double>(needed_ - found.mass);
            bound = std::max(bound, (found.cost + price * missing) - rounding(price));
            const double more = static_cast<double>(found.mass - low.mass);
            const bool is_between = found.mass > low.mass && found.mass < best.mass;
            if (!is_between || price * more <= found.cost - low.cost) break;
            (found.mass >= needed_ ? best : low) = found;
        }
    }
    trim(best);
    polish(best);
    join(best);
    measure(best);
}

// An upper limit of what rounding does to the surplus that a scan finds, and to that of any other
// pieces.
double RegionSearch::rounding(double price) const noexcept {
    const double widest = (values_[n_atoms_ - 1] - values_[0]) + thickness_;
    const double largest = price * static_cast<double>(cumulative_[n_atoms_]) +
                           (widest + static_cast<double>(max_pieces_) * (gap_ + thickness_));
    return static_cast<double>(n_atoms_ + 8) * 0x1p-49 * largest;
}

void RegionSearch::at_price(double price, Choice& found) noexcept {
    const auto scan_up_to = [&]<std::size_t... n>(std::index_sequence<n...>) {
        std::size_t p = 0;
        (void)((max_pieces_ == n + 1 && (p = scan<n + 1>(price), true)) || ...);
        return p;
    };
    std::size_t p = scan_up_to(std::make_index_sequence<max_region_pieces>());
    // Back along the trail: the last pieces come first.
    found.n = p;
    bool inside = false;
    for (std::size_t i = n_atoms_; i-- > 0 && p > 0;) {
        const unsigned bits = trail_[i] >> (2 * (p - 1));
        if (!inside) {
            if ((bits & 2u) == 0) continue;
            inside = true;
            found.pieces[p - 1].last = i;
        }
        if ((bits & 1u) == 0) continue;
        found.pieces[--p].first = i;
        inside = false;
    }
    measure(found);
}

// The number of pieces of most surplus, n at most; ties: most mass, then fewest pieces.
template <std::size_t n>
std::size_t RegionSearch::scan(double price) noexcept {
    // Of p + 1 pieces, of which the last is open or all are closed.
    std::array<double, n> open, shut;
    std::array<mass_t, n> open_mass{}, shut_mass{};
    open.fill(-infinity);
    shut.fill(-infinity);
    for (std::size_t i = 0; i < n_atoms_; ++i) {
        const mass_t mass = cumulative_[i + 1] - cumulative_[i];
        const double gain = price * static_cast<double>(mass);
        unsigned bits = 0;
        for (std::size_t p = n; p-- > 0;) {
            const double stay = open[p] - steps_[i];
            const double before = p == 0 ? 0 : shut[p - 1] - gap_;
            const mass_t mass_before = p == 0 ? 0 : shut_mass[p - 1];
            const double begin = before - thickness_;
            const bool begun = begin > stay || (begin == stay && mass_before > open_mass[p]);
            open[p] = (begun ? begin : stay) + gain;
            open_mass[p] = (begun ? mass_before : open_mass[p]) + mass;
            const bool ends =
                open[p] > shut[p] || (open[p] == shut[p] && open_mass[p] > shut_mass[p]);
            shut[p] = ends ? open[p] : shut[p];
            shut_mass[p] = ends ? open_mass[p] : shut_mass[p];
            bits |= (static_cast<unsigned>(begun) | static_cast<unsigned>(ends) << 1) << (2 * p);
        }
        trail_[i] = static_cast<std::uint16_t>(bits);
    }
    std::size_t best = 0;
    for (std::size_t p = 1; p < n; ++p) {
        if (shut[p] > shut[best] || (shut[p] == shut[best] && shut_mass[p] > shut_mass[best])) {
            best = p;
        }
    }
    return best + 1;
}

// All mass at the least cost: without the longest steps, the first of equal ones, that cost more
// than a gap.
void RegionSearch::of_all(Choice& found) const noexcept {
    std::array<std::size_t, max_region_pieces> cuts{};  // atoms behind the steps, longest first
    std::size_t n_cuts = 0;
    for (std::size_t i = 1; i < n_atoms_; ++i) {
        if (!(steps_[i] - thickness_ > gap_)) continue;
        std::size_t at = n_cuts;
        while (at > 0 && steps_[i] > steps_[cuts[at - 1]]) --at;
        if (at == max_pieces_ - 1) continue;
        n_cuts = std::min(n_cuts + 1, max_pieces_ - 1);
        for (std::size_t k = n_cuts - 1; k > at; --k) cuts[k] = cuts[k - 1];
        cuts[at] = i;
    }
    std::ranges::sort(std::span(cuts).first(n_cuts));
    found.n = n_cuts + 1;
    for (std::size_t q = 0; q < found.n; ++q) {
        found.pieces[q] = {q == 0 ? 0 : cuts[q - 1], q == n_cuts ? n_atoms_ - 1 : cuts[q] - 1};
    }
    measure(found);
}

// Drops atoms at ends, or whole pieces, while what is left holds the mass: the largest saving
// first, then the least mass, then from the left.
void RegionSearch::trim(Choice& choice) const noexcept {
    mass_t spare = choice.mass - needed_;
    for (;;) {
        double most = 0;
        mass_t least = 0;
        std::size_t at = 0;
        enum { nothing, first, last, all } what = nothing;
        const auto consider = [&](std::size_t q, auto part, double saving, mass_t mass) {
            if (mass > spare || saving < most || (saving == most && !(saving > 0 && mass < least)))
                return;
            most = saving;
            least = mass;
            at = q;
            what = part;
        };
        for (std::size_t q = 0; q < choice.n; ++q) {
            const auto [i, j] = choice.pieces[q];
            if (i < j) {
                consider(q, first, steps_[i + 1], cumulative_[i + 1] - cumulative_[i]);
                consider(q, last, steps_[j], cumulative_[j + 1] - cumulative_[j]);
            }
            if (choice.n > 1) consider(q, all, length({i, j}) + gap_, mass({i, j}));
        }
        if (what == nothing) break;
        spare -= least;
        if (what == first) {
            ++choice.pieces[at].first;
        } else if (what == last) {
            --choice.pieces[at].last;
        } else {
            --choice.n;
            for (std::size_t q = at; q < choice.n; ++q) choice.pieces[q] = choice.pieces[q + 1];
        }
    }
    choice.mass = needed_ + spare;
}

// Makes each piece the shortest in its place that supplies what the others lack, while that helps.
void RegionSearch::polish(Choice& choice) const noexcept {
    bool helped = true;
    for (std::size_t round = 0; helped && round < max_rounds; ++round) {
        helped = false;
        for (std::size_t q = 0; q < choice.n; ++q) {
            Piece& piece = choice.pieces[q];
            const mass_t missing = needed_ - (choice.mass - mass(piece));
            if (missing <= 0) continue;
            const std::size_t begin = q == 0 ? 0 : choice.pieces[q - 1].last + 1;
            const std::size_t end = q + 1 < choice.n ? choice.pieces[q + 1].first : n_atoms_;
            const Piece found = shortest(begin, end, missing);
            if (!(length(found) < length(piece))) continue;
            choice.mass += mass(found) - mass(piece);
            piece = found;
            helped = true;
        }
    }
}

// The shortest piece of atoms [begin, end) that holds `needed`, which all of them do; ties: most
// mass, then the leftmost.
RegionSearch::Piece RegionSearch::shortest(std::size_t begin, std::size_t end,
                                           mass_t needed) const noexcept {
    Piece best{begin, end - 1};
    double least = infinity;
    for (std::size_t i = begin, j = begin; i < end; ++i) {
        while (j < end && cumulative_[j + 1] - cumulative_[i] < needed) ++j;
        if (j == end) break;
        const double own = length({i, j});
        if (own > least || (own == least && mass({i, j}) <= mass(best))) continue;
        least = own;
        best = {i, j};
    }
    return best;
}

// Joins neighbours where what lies between costs no more than a gap.
void RegionSearch::join(Choice& choice) const noexcept {
    std::size_t n = 1;
    for (std::size_t q = 1; q < choice.n; ++q) {
        Piece& left = choice.pieces[n - 1];
        const Piece right = choice.pieces[q];
        if ((values_[right.first] - values_[left.last]) - thickness_ <= gap_) {
            left.last = right.last;
        } else {
            choice.pieces[n++] = right;
        }
    }
    choice.n = n;
}

void RegionSearch::measure(Choice& choice) const noexcept {
    choice.mass = 0;
    choice.cost = 0;
    for (std::size_t q = 0; q < choice.n; ++q) {
        choice.mass += mass(choice.pieces[q]);
        choice.cost += length(choice.pieces[q]);
    }
    choice.cost += static_cast<double>(choice.n - 1) * gap_;
}

}  // namespace hdicore
