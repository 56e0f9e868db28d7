#include "model/estimate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tensorpool::command::model {
namespace {

constexpr std::uint64_t context_step = 256;
// A smaller batch makes prompts slow and saves little memory.
constexpr std::uint64_t min_batch = 32;

Plan with_context(Plan plan, std::uint64_t context) {
    plan.context = context;
    return plan;
}

Plan with_batch(Plan plan, std::uint64_t batch) {
    plan.batch = batch;
    return plan;
}

Plan with_layers(Plan plan, std::uint64_t layers) {
    plan.layers_on_device = layers;
    return plan;
}

/// A quantised cache needs flash attention.
Plan with_cache(Plan plan, std::string_view name) {
    plan.cache = *find_cache_type(name);
    plan.flash_attention = plan.flash_attention || plan.cache.quantised();
    return plan;
}

/// Returns the options that change the requested plan to the other one.
std::string options_between(const Plan& request, const Plan& plan) {
    std::string options;
    if (plan.layers_on_device != request.layers_on_device)
        options += fmt::format(" --layers-on-device {}", plan.layers_on_device);
    if (plan.context != request.context) options += fmt::format(" --context {}", plan.context);
    if (plan.sequences != request.sequences)
        options += fmt::format(" --sequences {}", plan.sequences);
    if (plan.cache.name != request.cache.name)
        options += fmt::format(" --kv-type {}", plan.cache.name);
    if (plan.flash_attention != request.flash_attention) options += " --flash-attention on";
    if (plan.batch != request.batch) options += fmt::format(" --batch {}", plan.batch);
    return options.empty() ? options : options.substr(1);
}

}  // namespace

bool fits(const Estimate& estimate, const Room& room) noexcept {
    return estimate.host.total() <= room.host && estimate.device.total() <= room.device;
}

bool Fitter::fits(const Plan& plan) const {
    return problem_of_cache(model_, plan).empty() &&
           model::fits(estimate(model_, weights_, plan), room_);
}

std::uint64_t Fitter::largest_context(const Plan& plan, std::uint64_t max) const {
    std::uint64_t fitting = 0;
    std::uint64_t too_many = max / context_step + 1;
    while (too_many - fitting > 1) {
        const std::uint64_t middle = fitting + (too_many - fitting) / 2;
        (fits(with_context(plan, middle * context_step)) ? fitting : too_many) = middle;
    }
    return fitting * context_step;
}

/// Returns the largest number of layers on the device, at most that of the plan, for which both the
/// device and the host have room; the plan's number if there is none. Fewer layers need less memory
/// on the device and more on the host, so both are checked for each number.
std::uint64_t Fitter::max_layers(const Plan& plan) const {
    for (std::uint64_t layers = plan.layers_on_device; layers > 0; --layers) {
        if (fits(with_layers(plan, layers))) return layers;
    }
    return fits(with_layers(plan, 0)) ? 0 : plan.layers_on_device;
}

void Fitter::add(std::vector<Suggestion>& list, const Plan& request, const Plan& plan) const {
    const std::string options = options_between(request, plan);
    if (options.empty() || !fits(plan)) return;
    for (const Suggestion& other : list) {
        if (other.options == options) return;
    }
    list.push_back({options, plan, estimate(model_, weights_, plan)});
}

void Fitter::add_single_changes(std::vector<Suggestion>& list, const Plan& request) const {
    if (request.layers_on_device > 0) add(list, request, with_layers(request, max_layers(request)));
    Plan flash = request;
    flash.flash_attention = true;
    add(list, request, flash);
    for (const char* const name : {"f16", "q8_0", "q4_0"}) {
        const Plan smaller = with_cache(request, name);
        if (smaller.cache.bytes * request.cache.elements <
            request.cache.bytes * smaller.cache.elements)
            add(list, request, smaller);
    }
    if (const std::uint64_t context = largest_context(request, request.context - 1); context > 0)
        add(list, request, with_context(request, context));
    for (std::uint64_t batch = std::bit_floor(request.batch - 1); batch >= min_batch; batch /= 2) {
        if (!fits(with_batch(request, batch))) continue;
        add(list, request, with_batch(request, batch));
        break;
    }
    for (std::uint64_t sequences = std::min<std::uint64_t>(request.sequences, 1 << 16) - 1;
         sequences > 0 && sequences < request.sequences; --sequences) {
        Plan fewer = request;
        fewer.sequences = sequences;
        if (!fits(fewer)) continue;
        add(list, request, fewer);
        break;
    }
}

void Fitter::add_several_changes(std::vector<Suggestion>& list, const Plan& request) const {
    for (const char* const name : {"q8_0", "q4_0"}) {
        for (const std::uint64_t batch :
             {request.batch, std::min<std::uint64_t>(request.batch, 128)}) {
            Plan plan = with_batch(with_cache(request, name), batch);
            if (!problem_of_cache(model_, plan).empty()) plan.cache = request.cache;
            plan.layers_on_device = request.layers_on_device > 0 ? max_layers(plan) : 0;
            const std::uint64_t context = largest_context(plan, plan.context);
            if (context > 0)
                add(list, request, with_context(plan, std::min(context, plan.context)));
        }
    }
    if (!list.empty()) return;
    Plan smallest = with_batch(with_cache(request, "q4_0"), std::min(request.batch, min_batch));
    if (!problem_of_cache(model_, smallest).empty()) smallest.cache = request.cache;
    smallest.context = std::min(request.context, context_step);
    smallest.sequences = 1;
    smallest.layers_on_device = request.layers_on_device > 0 ? max_layers(smallest) : 0;
    add(list, request, smallest);
}

std::vector<Suggestion> Fitter::suggestions(const Plan& request) const {
    std::vector<Suggestion> list;
    add_single_changes(list, request);
    if (list.empty()) add_several_changes(list, request);
    return list;
}

}  // namespace tensorpool::command::model
