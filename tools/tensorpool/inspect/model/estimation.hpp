#pragma once

/// @file
/// Compares an estimate with the available memory.

#include <optional>
#include <string>
#include <vector>

#include <tensorpool/model_estimate.hpp>

namespace tensorpool::command::model {

/// The memory of a device, as reported by its driver or given by the user.
struct DeviceMemory {
    std::string name;
    std::uint64_t available = 0;
    std::uint64_t total = 0;
};

struct AvailableMemory {
    std::uint64_t available = 0;  ///< available to this process on the machine and its container
    std::uint64_t total = 0;
    std::optional<DeviceMemory> device;
    std::string why_no_device = {};  ///< the reason, without a period; "": nothing was asked
};

/// The user's options. Values that are not set follow from the model and the machine.
struct Request {
    std::optional<std::uint64_t> context;
    std::optional<std::uint64_t> layers_on_device;
    std::optional<std::uint64_t> device_bytes;
    std::string cache = "f16";
    std::uint64_t batch = 512;
    std::uint64_t sequences = 1;
    bool flash_attention = true;
};

struct Estimation {
    std::optional<ModelHyperparameters> model;  ///< nullopt: only the weights are known
    std::string why_unknown;                    ///< the reason for that, as a sentence
    std::string source;                         ///< the file with the hyperparameters
    ModelWeights weights;
    InferencePlan plan;
    MemoryEstimate need;
    AvailableMemory memory;
    bool fits = false;
    std::vector<PlanSuggestion> suggestions;  ///< if it does not fit
    std::uint64_t largest_context = 0;        ///< the largest context that fits; 0: none
    std::uint64_t fitting_layers = 0;         ///< layers that fit on a device not requested
    std::optional<MemoryEstimate>
        with_unused_window;  ///< with a window that llama.cpp does not use
};

/// Makes the estimate. Throws CommandError (wrong_usage) for a type of cache that the model cannot
/// have.
Estimation make_estimation(std::optional<ModelHyperparameters> model, ModelWeights weights,
                           const Request& request, AvailableMemory memory);

/// Returns all names: "f32, f16, …".
std::string cache_type_names();
/// Returns an error message if there is no type of this name, else "". A validator for CLI11.
std::string problem_of_cache_type(const std::string& name);

/// Returns the options that change the requested plan to the other one.
std::string options_between(const InferencePlan& request, const InferencePlan& plan);

}  // namespace tensorpool::command::model
