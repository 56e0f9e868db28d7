#pragma once

/// @file
/// Makes Armadillo take its memory from the global pool.
///
/// After this header, the elements of every arma::Mat, Col, Row, Cube and SpMat come from the
/// global pool, each object at a multiple of 64 bytes. Include it instead of `<armadillo>`, or
/// before it, in every source of a program that uses Armadillo: one source may free what another
/// allocated. The compiler option `-include tensorpool/armadillo.hpp` does that for all of them.
///
/// Objects throw AllocationError if the pool cannot meet a request. Any thread may use them. Up to
/// 16 elements of a matrix lie in the object itself and take no memory from the pool.

#ifdef ARMA_INCLUDES
#error "tensorpool: Armadillo was included before <tensorpool/armadillo.hpp>, expected after it"
#endif
#if defined(ARMA_ALIEN_MEM_ALLOC_FUNCTION) || defined(ARMA_ALIEN_MEM_FREE_FUNCTION)
#error "tensorpool: ARMA_ALIEN_MEM_… is set already, expected <tensorpool/armadillo.hpp> to set it"
#endif

#include <tensorpool/memory_pool.hpp>

/// The function that Armadillo calls for memory.
#define ARMA_ALIEN_MEM_ALLOC_FUNCTION tensorpool::get_global_memory_pool().allocate
/// The function that Armadillo calls to free memory.
#define ARMA_ALIEN_MEM_FREE_FUNCTION tensorpool::get_global_memory_pool().deallocate

#include <armadillo>
