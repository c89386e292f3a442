// pmf/regions.hpp: a distribution -> a region of few pieces that holds a mass at little cost
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pmf/hdi.hpp"
#include "pmf/pmf.hpp"
#include "pmf/region_grid.hpp"

namespace hdicore {

inline constexpr std::size_t max_region_pieces = 8;

struct Region {
    std::size_t n_pieces = 0;
    std::array<Interval, max_region_pieces> pieces{};  // ascending
    double bound = 0;  // no region of as many pieces or fewer costs less
};

struct RegionShape {
    std::size_t max_pieces = 1;  // from 1 to max_region_pieces
    double gap = 0;              // cost of each piece after the first, not negative and finite
    const RegionGrid* grid = nullptr;
};

// Looks for the closed pieces between atoms, or of whole bins of a grid, that hold a mass at the
// least cost: their total length, plus a gap for each piece after the first.
//
// A price for a unit of mass makes this a recursion over the atoms: after each of them, the most of
// price * mass - cost with p pieces begun, the last of them open or all closed. The price is
// searched on the lower hull of cost by mass: at the slope between the nearest corners on either
// side of the mass, until no corner is found between them, at most max_scans times. What the dearer
// corner has too much is dropped, atom by atom; each piece becomes the shortest that supplies what
// the others lack, and pieces are joined where that costs nothing. One piece is always the HDI, and
// so is a region that costs no less.
//
// The bound is the greatest of cost + price * (needed - mass) over the prices asked: the Lagrangian
// bound, less what rounding may add to it; of one piece the width of the HDI, less what widths that
// tie with the least may have more. O(max_pieces * atoms) for each scan, 5 to 10 scans.
class RegionSearch {
  public:
    // Scratch memory, 18 bytes for each atom or 42 for each bin, is allocated here.
    RegionSearch(std::size_t max_atoms, const RegionGrid* grid);

    // 0 < needed <= total. The grid is that of the construction.
    Region find(const Pmf& pmf, mass_t needed, const RegionShape& shape) noexcept;

  private:
    static constexpr std::size_t max_scans = 64;
    static constexpr std::size_t max_rounds = 16;

    struct Piece {
        std::size_t first;  // atoms
        std::size_t last;
    };
    // Pieces with their mass and cost.
    struct Choice {
        std::array<Piece, max_region_pieces> pieces{};
        std::size_t n = 0;
        mass_t mass = 0;
        double cost = 0;
    };

    // Both return the unit of lengths.
    double take_atoms(const Pmf& pmf) noexcept;
    double take_bins(const Pmf& pmf, const RegionGrid& grid) noexcept;
    void search(Choice& best, double& bound) noexcept;
    void at_price(double price, Choice& found) noexcept;
    template <std::size_t n>
    std::size_t scan(double price) noexcept;
    void of_all(Choice& found) const noexcept;
    void trim(Choice& choice) const noexcept;
    void polish(Choice& choice) const noexcept;
    Piece shortest(std::size_t begin, std::size_t end, mass_t needed) const noexcept;
    void join(Choice& choice) const noexcept;
    void measure(Choice& choice) const noexcept;
    double rounding(double price) const noexcept;

    double length(Piece piece) const noexcept {
        return (values_[piece.last] - values_[piece.first]) + thickness_;
    }
    mass_t mass(Piece piece) const noexcept {
        return cumulative_[piece.last + 1] - cumulative_[piece.first];
    }

    std::size_t n_atoms_ = 0;
    const mass_t* cumulative_ = nullptr;
    mass_t needed_ = 0;
    std::size_t max_pieces_ = 1;
    double gap_ = 0;
    double thickness_ = 0;        // length of a piece of one atom
    std::vector<double> values_;  // of atoms, scaled, or numbers of bins
    std::vector<double> steps_;   // from the value before; 0 for the first
    // Bits 2 p and 2 p + 1: whether piece p begins at the atom, and best ends there.
    std::vector<std::uint16_t> trail_;

    std::vector<mass_t> bins_;
    std::vector<double> smoothed_;
    std::vector<mass_t> binned_;  // cumulative
};

}  // namespace hdicore
