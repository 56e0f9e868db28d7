#include <tensorpool/model_estimate.hpp>

#include <algorithm>
#include <bit>

namespace tensorpool {
namespace {

constexpr std::uint64_t context_step = 256;
// A smaller batch makes prompts slow and saves little memory.
constexpr std::uint64_t min_batch = 32;

using Number = std::uint64_t InferencePlan::*;

InferencePlan with(Number number, InferencePlan plan, std::uint64_t value) {
    plan.*number = value;
    return plan;
}

/// Returns the next smaller number; 0 for 0.
constexpr std::uint64_t below(std::uint64_t number) noexcept {
    return number > 0 ? number - 1 : 0;
}

bool takes_less(const DataType& one, const DataType& other) noexcept {
    return one.block_bytes() * other.block_elements() < other.block_bytes() * one.block_elements();
}

/// A quantised cache needs flash attention.
InferencePlan with_cache(InferencePlan plan, std::string_view name) {
    plan.cache = *find_kv_cache_type(name);
    plan.flash_attention = plan.flash_attention || plan.cache.is_quantised();
    return plan;
}

}  // namespace

bool PlanFitter::fits(const InferencePlan& plan) const {
    return problem_of_cache(model_, plan).empty() &&
           tensorpool::fits(estimate_memory(model_, weights_, plan), room_);
}

std::uint64_t PlanFitter::largest_context(const InferencePlan& plan, std::uint64_t max) const {
    std::uint64_t fitting = 0;
    std::uint64_t too_many = max / context_step + 1;
    while (too_many - fitting > 1) {
        const std::uint64_t middle = fitting + (too_many - fitting) / 2;
        (fits(with(&InferencePlan::context, plan, middle * context_step)) ? fitting : too_many) =
            middle;
    }
    return fitting * context_step;
}

// Fewer layers need less memory on the device and more on the host, so both are checked for each
// number. Larger numbers than that of all layers plus one mean the same.
std::uint64_t PlanFitter::max_layers(const InferencePlan& plan) const {
    if (fits(plan)) return plan.layers_on_device;
    std::uint64_t layers = std::min<std::uint64_t>(plan.layers_on_device, model_.layers.size() + 1);
    while (layers > 0) {
        if (fits(with(&InferencePlan::layers_on_device, plan, --layers))) return layers;
    }
    return plan.layers_on_device;
}

void PlanFitter::add(Suggestions& list, const InferencePlan& request,
                     const InferencePlan& plan) const {
    if (plan == request || !fits(plan)) return;
    if (std::ranges::find(list, plan, &PlanSuggestion::plan) != list.end()) return;
    list.push_back({plan, estimate_memory(model_, weights_, plan)});
}

void PlanFitter::add_single_changes(Suggestions& list, const InferencePlan& request) const {
    if (request.layers_on_device > 0)
        add(list, request, with(&InferencePlan::layers_on_device, request, max_layers(request)));
    InferencePlan flash = request;
    flash.flash_attention = true;
    add(list, request, flash);
    for (const char* const name : {"f16", "q8_0", "q4_0"}) {
        const InferencePlan smaller = with_cache(request, name);
        if (takes_less(smaller.cache.data, request.cache.data)) add(list, request, smaller);
    }
    const std::uint64_t context = largest_context(request, below(request.context));
    if (context > 0) add(list, request, with(&InferencePlan::context, request, context));
    for (std::uint64_t batch = std::bit_floor(below(request.batch)); batch >= min_batch;
         batch /= 2) {
        if (!fits(with(&InferencePlan::batch, request, batch))) continue;
        add(list, request, with(&InferencePlan::batch, request, batch));
        break;
    }
    for (std::uint64_t sequences = std::min<std::uint64_t>(request.sequences, 1 << 16) - 1;
         sequences > 0 && sequences < request.sequences; --sequences) {
        const InferencePlan fewer = with(&InferencePlan::sequences, request, sequences);
        if (!fits(fewer)) continue;
        add(list, request, fewer);
        break;
    }
}

void PlanFitter::add_several_changes(Suggestions& list, const InferencePlan& request) const {
    for (const char* const name : {"q8_0", "q4_0"}) {
        for (const std::uint64_t batch :
             {request.batch, std::min<std::uint64_t>(request.batch, 128)}) {
            InferencePlan plan = with(&InferencePlan::batch, with_cache(request, name), batch);
            if (!problem_of_cache(model_, plan).empty()) plan.cache = request.cache;
            plan.layers_on_device = request.layers_on_device > 0 ? max_layers(plan) : 0;
            const std::uint64_t context = largest_context(plan, plan.context);
            if (context > 0)
                add(list, request,
                    with(&InferencePlan::context, plan, std::min(context, plan.context)));
        }
    }
    if (!list.empty()) return;
    InferencePlan smallest = with(&InferencePlan::batch, with_cache(request, "q4_0"),
                                  std::min(request.batch, min_batch));
    if (!problem_of_cache(model_, smallest).empty()) smallest.cache = request.cache;
    smallest.context = std::min(request.context, context_step);
    smallest.sequences = 1;
    smallest.layers_on_device = request.layers_on_device > 0 ? max_layers(smallest) : 0;
    add(list, request, smallest);
}

std::vector<PlanSuggestion> PlanFitter::suggestions(const InferencePlan& request) const {
    std::vector<PlanSuggestion> list;
    add_single_changes(list, request);
    if (list.empty()) add_several_changes(list, request);
    return list;
}

}  // namespace tensorpool
