#pragma once

/// @file
/// Armadillo: from here on the elements of every arma::Mat, Col, Row, Cube and SpMat come from the
/// global pool, each object at a multiple of 64 bytes. Takes the place of `#include <armadillo>`,
/// or belongs before it, in every source of a program that uses Armadillo, for one source may free
/// what another allocated: best by the compiler's option `-include tensorpool/armadillo.hpp`.
///
/// Objects throw AllocationError where the pool does. Any thread. Up to 16 elements of a matrix lie
/// in the object itself, and no pool is asked for them.

#ifdef ARMA_INCLUDES
#error "tensorpool: Armadillo was included before <tensorpool/armadillo.hpp>, expected after it"
#endif
#if defined(ARMA_ALIEN_MEM_ALLOC_FUNCTION) || defined(ARMA_ALIEN_MEM_FREE_FUNCTION)
#error "tensorpool: ARMA_ALIEN_MEM_… is set already, expected <tensorpool/armadillo.hpp> to set it"
#endif

#include <tensorpool/memory_pool.hpp>

#define ARMA_ALIEN_MEM_ALLOC_FUNCTION tensorpool::get_global_memory_pool().allocate
#define ARMA_ALIEN_MEM_FREE_FUNCTION tensorpool::get_global_memory_pool().deallocate

#include <armadillo>
