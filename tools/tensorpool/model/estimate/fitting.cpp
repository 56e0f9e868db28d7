#include "model/estimate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tensorpool::command::model {
namespace {

constexpr std::uint64_t context_step = 256;
// Below it a prompt is read slowly for little memory.
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

/// What must be said to get from one to the other.
std::string options_between(const Plan& asked, const Plan& plan) {
    std::string options;
    if (plan.layers_on_device != asked.layers_on_device)
        options += fmt::format(" --layers-on-device {}", plan.layers_on_device);
    if (plan.context != asked.context) options += fmt::format(" --context {}", plan.context);
    if (plan.sequences != asked.sequences)
        options += fmt::format(" --sequences {}", plan.sequences);
    if (plan.cache.name != asked.cache.name)
        options += fmt::format(" --kv-type {}", plan.cache.name);
    if (plan.flash_attention != asked.flash_attention) options += " --flash-attention on";
    if (plan.batch != asked.batch) options += fmt::format(" --batch {}", plan.batch);
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

std::uint64_t Fitter::largest_context(const Plan& plan, std::uint64_t most) const {
    std::uint64_t fitting = 0;
    std::uint64_t too_many = most / context_step + 1;
    while (too_many - fitting > 1) {
        const std::uint64_t middle = fitting + (too_many - fitting) / 2;
        (fits(with_context(plan, middle * context_step)) ? fitting : too_many) = middle;
    }
    return fitting * context_step;
}

/// Fewer layers want less on the device and more on the host, so both ends are looked at: the
/// largest number, those of the plan at most, for which the device and the host have room; where
/// there is none, that of the plan.
std::uint64_t Fitter::max_layers(const Plan& plan) const {
    for (std::uint64_t layers = plan.layers_on_device; layers > 0; --layers) {
        if (fits(with_layers(plan, layers))) return layers;
    }
    return fits(with_layers(plan, 0)) ? 0 : plan.layers_on_device;
}

void Fitter::add(std::vector<Suggestion>& list, const Plan& asked, const Plan& plan) const {
    const std::string options = options_between(asked, plan);
    if (options.empty() || !fits(plan)) return;
    for (const Suggestion& other : list) {
        if (other.options == options) return;
    }
    list.push_back({options, plan, estimate(model_, weights_, plan)});
}

void Fitter::add_single_changes(std::vector<Suggestion>& list, const Plan& asked) const {
    if (asked.layers_on_device > 0) add(list, asked, with_layers(asked, max_layers(asked)));
    Plan flash = asked;
    flash.flash_attention = true;
    add(list, asked, flash);
    for (const char* const name : {"f16", "q8_0", "q4_0"}) {
        const Plan smaller = with_cache(asked, name);
        if (smaller.cache.bytes * asked.cache.elements < asked.cache.bytes * smaller.cache.elements)
            add(list, asked, smaller);
    }
    if (const std::uint64_t context = largest_context(asked, asked.context - 1); context > 0)
        add(list, asked, with_context(asked, context));
    for (std::uint64_t batch = std::bit_floor(asked.batch - 1); batch >= min_batch; batch /= 2) {
        if (!fits(with_batch(asked, batch))) continue;
        add(list, asked, with_batch(asked, batch));
        break;
    }
    for (std::uint64_t sequences = std::min<std::uint64_t>(asked.sequences, 1 << 16) - 1;
         sequences > 0 && sequences < asked.sequences; --sequences) {
        Plan fewer = asked;
        fewer.sequences = sequences;
        if (!fits(fewer)) continue;
        add(list, asked, fewer);
        break;
    }
}

void Fitter::add_several_changes(std::vector<Suggestion>& list, const Plan& asked) const {
    for (const char* const name : {"q8_0", "q4_0"}) {
        for (const std::uint64_t batch : {asked.batch, std::min<std::uint64_t>(asked.batch, 128)}) {
            Plan plan = with_batch(with_cache(asked, name), batch);
            if (!problem_of_cache(model_, plan).empty()) plan.cache = asked.cache;
            plan.layers_on_device = asked.layers_on_device > 0 ? max_layers(plan) : 0;
            const std::uint64_t context = largest_context(plan, plan.context);
            if (context > 0) add(list, asked, with_context(plan, std::min(context, plan.context)));
        }
    }
    if (!list.empty()) return;
    Plan least = with_batch(with_cache(asked, "q4_0"), std::min(asked.batch, min_batch));
    if (!problem_of_cache(model_, least).empty()) least.cache = asked.cache;
    least.context = std::min(asked.context, context_step);
    least.sequences = 1;
    least.layers_on_device = asked.layers_on_device > 0 ? max_layers(least) : 0;
    add(list, asked, least);
}

std::vector<Suggestion> Fitter::suggestions(const Plan& asked) const {
    std::vector<Suggestion> list;
    add_single_changes(list, asked);
    if (list.empty()) add_several_changes(list, asked);
    return list;
}

}  // namespace tensorpool::command::model
