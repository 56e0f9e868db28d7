#pragma once

/// @file
/// The profiles of a process at the ends of its iterations.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <tensorpool/heap_profile.hpp>

#include "leaks/verdict.hpp"

namespace tensorpool::command::leaks {

/// Collects profiles. Of all but the last one, only the values of each site are kept.
class Observation {
public:
    /// Adds the profile after `iteration` iterations, which grow from call to call.
    void add(HeapProfile profile, std::uint64_t iteration);

    std::size_t profiles() const noexcept { return iterations_.size(); }
    /// Returns the number of iterations from the first to the last profile.
    std::uint64_t iterations() const noexcept { return iterations_since(0); }
    /// Returns the number of iterations from this profile to the last one; 0 if there is none.
    std::uint64_t iterations_since(std::size_t profile) const noexcept;
    /// Returns the seconds from the first to the last profile.
    double seconds() const noexcept;
    /// Returns the last profile; an empty one if there is none.
    const HeapProfile& last() const noexcept { return last_; }
    /// Returns the values of each site by its id. All have a value for each profile.
    const std::unordered_map<std::uint64_t, History>& sites() const noexcept { return sites_; }

private:
    void add_noise(History& history, const ProfileSite& site);

    std::vector<std::uint64_t> iterations_;
    std::uint64_t first_unix_ns_ = 0;
    HeapProfile last_;
    std::unordered_map<std::uint64_t, History> sites_;
    std::unordered_map<std::uint64_t, ProfileSite> before_;  // the sites of the profile before
};

}  // namespace tensorpool::command::leaks
