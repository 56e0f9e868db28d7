#pragma once

#include <cstddef>
#include <utility>

#include <tensorpool/budget.hpp>
#include <tensorpool/errors.hpp>

#include "limits/budget_node.hpp"

namespace tensorpool::testing {

/// Bytes that are charged to a budget for the lifetime of this object.
class Charged {
public:
    Charged() noexcept = default;
    /// Asks holders as a request for memory does. Throws AllocationError if a limit refuses it.
    Charged(const Budget& budget, std::size_t bytes) : budget_(&budget), bytes_(bytes) {
        limits::BudgetRequest request;
        if (budget_.charge_or_ask(bytes, request)) return;
        AllocationFailure failure = base::failure_of(request.refusal(), bytes, 0, 0);
        const limits::BudgetLines lines(request);
        failure.details = lines.c_str();
        throw AllocationError(budget.name().c_str(), failure);
    }
    Charged(Charged&& other) noexcept
        : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charged& operator=(Charged&& other) noexcept {
        std::swap(budget_, other.budget_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Charged() { give_back(); }
    void give_back() noexcept { budget_.refund(std::exchange(bytes_, 0)); }

private:
    limits::HeldBudget budget_;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::testing
