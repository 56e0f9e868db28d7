#pragma once

/// @file
/// An estimate beside the memory that there is.

#include <optional>
#include <string>
#include <vector>

#include "model/estimate/fitting.hpp"

namespace tensorpool::command::model {

/// A device's memory, by its driver or as it was told.
struct DeviceMemory {
    std::string name;
    std::uint64_t available = 0;
    std::uint64_t total = 0;
};

struct MemoryThere {
    std::uint64_t available = 0;  ///< to this process: of the machine and its container
    std::uint64_t total = 0;
    std::optional<DeviceMemory> device;
};

/// What was asked for. Nothing: as the model and the machine have it.
struct Asked {
    std::optional<std::uint64_t> context;
    std::optional<std::uint64_t> layers_on_device;
    std::optional<std::uint64_t> device_bytes;
    std::string cache = "f16";
    std::uint64_t batch = 512;
    std::uint64_t sequences = 1;
    bool flash_attention = true;
};

struct Estimation {
    std::optional<Hyperparameters> model;  ///< nothing: only the weights are known
    std::string why_unknown;               ///< then: a sentence
    std::string source;                    ///< where hyperparameters came from
    Weights weights;
    Plan plan;
    Estimate need;
    MemoryThere memory;
    bool fits = false;
    std::vector<Suggestion> suggestions;         ///< where it does not fit
    std::uint64_t largest_context = 0;           ///< that would fit; 0: none
    std::uint64_t fitting_layers = 0;            ///< on a device that was not asked for
    std::optional<Estimate> with_unused_window;  ///< were the window used that llama.cpp does not
};

/// Puts the figures together. Throws CommandError (wrong_usage) for a cache that the model cannot
/// have.
Estimation make_estimation(std::optional<Hyperparameters> model, Weights weights,
                           const Asked& asked, MemoryThere memory);

}  // namespace tensorpool::command::model
