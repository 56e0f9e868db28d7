#pragma once

/// @file
/// Whether an estimate fits, and what would where it does not.

#include <string>
#include <vector>

#include "model/estimate/estimate.hpp"

namespace tensorpool::command::model {

/// Bytes that may be taken.
struct Room {
    std::uint64_t host = 0;
    std::uint64_t device = 0;
};

bool fits(const Estimate& estimate, const Room& room) noexcept;

/// A plan that fits, by the options that turn the asked one into it.
struct Suggestion {
    std::string options;
    Plan plan;
    Estimate estimate;
};

class Fitter {
public:
    /// `room` and what the others point to must outlive it.
    Fitter(const Hyperparameters& model, const Weights& weights, Room room)
        : model_(model), weights_(weights), room_(room) {}

    bool fits(const Plan& plan) const;
    /// The largest multiple of 256 up to `most` that fits in place of the plan's context; 0: none.
    std::uint64_t largest_context(const Plan& plan, std::uint64_t most) const;
    /// The least changes first: one thing that would do alone, else several at once. Each was
    /// estimated in the same way and fits. Empty: not even the smallest does.
    std::vector<Suggestion> suggestions(const Plan& plan) const;

private:
    void add(std::vector<Suggestion>& list, const Plan& asked, const Plan& plan) const;
    void add_single_changes(std::vector<Suggestion>& list, const Plan& asked) const;
    void add_several_changes(std::vector<Suggestion>& list, const Plan& asked) const;
    std::uint64_t max_layers(const Plan& plan) const;

    const Hyperparameters& model_;
    const Weights& weights_;
    Room room_;
};

}  // namespace tensorpool::command::model
