#pragma once

/// @file
/// Checks whether an estimate fits, and finds plans that fit if it does not.

#include <string>
#include <vector>

#include "model/estimate/estimate.hpp"

namespace tensorpool::command::model {

/// The bytes available.
struct Room {
    std::uint64_t host = 0;
    std::uint64_t device = 0;
};

bool fits(const Estimate& estimate, const Room& room) noexcept;

/// A plan that fits, with the options that change the requested plan to it.
struct Suggestion {
    std::string options;
    Plan plan;
    Estimate estimate;
};

class Fitter {
public:
    /// Requires: the model and the weights outlive the fitter.
    Fitter(const Hyperparameters& model, const Weights& weights, Room room)
        : model_(model), weights_(weights), room_(room) {}

    bool fits(const Plan& plan) const;
    /// Returns the largest multiple of 256, up to `max`, that fits in place of the plan's context;
    /// 0 if there is none.
    std::uint64_t largest_context(const Plan& plan, std::uint64_t max) const;
    /// Returns plans that fit: those with a single change, or with several changes if there are
    /// none. Empty if nothing fits.
    std::vector<Suggestion> suggestions(const Plan& plan) const;

private:
    void add(std::vector<Suggestion>& list, const Plan& request, const Plan& plan) const;
    void add_single_changes(std::vector<Suggestion>& list, const Plan& request) const;
    void add_several_changes(std::vector<Suggestion>& list, const Plan& request) const;
    std::uint64_t max_layers(const Plan& plan) const;

    const Hyperparameters& model_;
    const Weights& weights_;
    Room room_;
};

}  // namespace tensorpool::command::model
