# Peers of the recorder's benchmark, each compiled in where it is found; the others are listed as skipped, with the
# reason.
function(strobe_bench_peer name why found)
  if(found)
    target_sources(strobe_record_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/peers/recorders_${name}.cc)
  else()
    message(STATUS "benchmark peer ${name}: not built (${why})")
    target_compile_definitions(strobe_record_bench PRIVATE "STROBE_NO_PEER_${name}=\"${why}\"")
  endif()
endfunction()

target_sources(strobe_record_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/peers/recorders_absent.cc)
target_include_directories(strobe_record_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

# The headers of NVTX 3 come with the wheels nvidia-nvtx and nvidia-nvtx-cu12, and with CUDA.
find_path(STROBE_NVTX_INCLUDE nvtx3/nvToolsExt.h
          HINTS ${STROBE_SITE_PACKAGES}/nvidia/cu13/include ${STROBE_SITE_PACKAGES}/nvidia/nvtx/include
          PATHS /usr/local/cuda/include)
strobe_bench_peer(nvtx "no headers: pip install nvidia-nvtx into STROBE_PYTHON's environment" "${STROBE_NVTX_INCLUDE}")
if(STROBE_NVTX_INCLUDE)
  target_include_directories(strobe_record_bench SYSTEM PRIVATE ${STROBE_NVTX_INCLUDE})
  target_link_libraries(strobe_record_bench PRIVATE ${CMAKE_DL_LIBS})
endif()

strobe_pkg_config(LTTNG_UST lttng-ust)
strobe_bench_peer(lttng "no LTTng-UST: install liblttng-ust-dev and lttng-tools" "${LTTNG_UST_FOUND}")
if(LTTNG_UST_FOUND)
  # Code that LTTng's macros make.
  add_library(strobe_bench_lttng OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/peers/recorders_lttng_provider.c)
  target_include_directories(strobe_bench_lttng PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(strobe_bench_lttng PUBLIC PkgConfig::LTTNG_UST ${CMAKE_DL_LIBS})
  target_link_libraries(strobe_record_bench PRIVATE strobe_bench_lttng)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/peers/recorders_lttng.cc PROPERTIES COMPILE_OPTIONS "-w")
endif()

set(torch_found OFF)
if(TARGET strobe_libtorch)
  set(torch_found ON)
endif()
strobe_bench_peer(torch "no LibTorch: pip install torch into STROBE_PYTHON's environment" ${torch_found})
if(torch_found)
  target_link_libraries(strobe_record_bench PRIVATE strobe_libtorch)
endif()
