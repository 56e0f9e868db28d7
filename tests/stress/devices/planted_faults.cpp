#include <algorithm>
#include <utility>

#include "stress/devices/faulty_backends.hpp"
#include "stress/devices/faulty_subjects.hpp"
#include "stress/devices/planted_fault.hpp"

namespace tensorpool::stress::devices {
namespace {

using Part = PlantedFault::Part;

template <class Faulty>
std::unique_ptr<Backend> make_backend(Backend& inner) {
    return std::make_unique<Faulty>(inner);
}

template <class Faulty>
std::unique_ptr<Subject> make_subject(std::unique_ptr<Subject> inner, Backend& backend,
                                      int device) {
    return std::make_unique<Faulty>(std::move(inner), backend, device);
}

template <class Faulty>
constexpr PlantedFault towards_device(const char* name, Part part = Part::device_memory) {
    return {name, part, make_backend<Faulty>, nullptr};
}

template <class Faulty>
constexpr PlantedFault towards_program(const char* name, Part part = Part::device_memory) {
    return {name, part, nullptr, make_subject<Faulty>};
}

constexpr PlantedFault all[] = {
    towards_device<ForgetsEvents>("forgets_events"),
    towards_device<RecordsOnTheDefaultStream>("records_on_the_default_stream"),
    towards_device<ReportsEventsReached>("reports_events_reached"),
    towards_device<QueriesTheWrongEvent>("queries_the_wrong_event"),
    towards_device<SharesEvents>("shares_events"),
    towards_device<ReportsStreamsIdle>("reports_streams_idle"),
    towards_device<QueriesTheDefaultStream>("queries_the_default_stream"),
    towards_device<DoesNotWaitForTheDevice>("does_not_wait_for_the_device"),
    towards_device<WaitsForOneStream>("waits_for_one_stream"),
    towards_device<DoesNotWaitForStreams>("does_not_wait_for_streams"),
    towards_device<UnmapsTooMuch>("unmaps_too_much"),
    towards_device<ReleasesASlabInUse>("releases_a_slab_in_use"),
    towards_device<ReleasesSlabsTwice>("releases_slabs_twice"),
    towards_device<SeesNoCapture>("sees_no_capture"),
    towards_device<MixesCaptures>("mixes_captures"),
    towards_device<WaitsInCapture>("waits_in_capture"),
    towards_program<ForgetsUses>("forgets_uses"),
    towards_program<RemembersOneUse>("remembers_one_use"),
    towards_program<RecordsUsesForTheDefaultStream>("records_uses_for_the_default_stream"),
    towards_program<AllocatesForTheDefaultStream>("allocates_for_the_default_stream"),
    towards_program<HandsOutTwice>("hands_out_twice"),
    towards_program<FreesEarly>("frees_early"),
    towards_program<TrimsBlocksInUse>("trims_blocks_in_use"),
    towards_program<FreesTwice>("frees_twice"),
    towards_program<StealsWithoutWaiting>("steals_without_waiting"),
    towards_program<HandsOutTooLittle>("hands_out_too_little"),
    towards_program<MisplacesBlocks>("misplaces_blocks"),
    towards_program<ReleasesCapturesEarly>("releases_captures_early"),
    towards_device<ForgetsEvents>("pinned_forgets_events", Part::pinned_memory),
    towards_device<RecordsOnTheDefaultStream>("pinned_records_on_the_default_stream",
                                              Part::pinned_memory),
    towards_device<ReportsEventsReached>("pinned_reports_events_reached", Part::pinned_memory),
    towards_device<ReleasesPinnedInUse>("pinned_releases_a_slab_in_use", Part::pinned_memory),
    towards_program<ForgetsUses>("pinned_forgets_uses", Part::pinned_memory),
    towards_program<HandsOutTwice>("pinned_hands_out_twice", Part::pinned_memory),
    towards_program<FreesEarly>("pinned_frees_early", Part::pinned_memory),
};

}  // namespace

std::span<const PlantedFault> planted_faults() noexcept {
    return all;
}

const PlantedFault* planted_fault(std::string_view name) noexcept {
    const auto found = std::find_if(std::begin(all), std::end(all),
                                    [&](const PlantedFault& fault) { return fault.name == name; });
    return found != std::end(all) ? found : nullptr;
}

}  // namespace tensorpool::stress::devices
