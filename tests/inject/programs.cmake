# Programs that tests/cli/record_test.py runs under `strobe record`: the C interfaces of NVTX and ITT. NVIDIA's headers
# come from the wheel nvidia-nvtx; without it that test is left out.
find_path(STROBE_NVTX_INCLUDE nvtx3/nvToolsExtCounters.h
  PATHS ${STROBE_SITE_PACKAGES}/nvidia/cu13/include ${STROBE_SITE_PACKAGES}/nvidia/nvtx/include)
if(STROBE_NVTX_INCLUDE)
  add_executable(strobe_test_nvtx_calls ${CMAKE_CURRENT_LIST_DIR}/nvtx_calls.c)
  target_include_directories(strobe_test_nvtx_calls SYSTEM PRIVATE ${STROBE_NVTX_INCLUDE})
  target_link_libraries(strobe_test_nvtx_calls PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_executable(strobe_test_own_recording ${CMAKE_CURRENT_LIST_DIR}/own_recording.cc)
  target_include_directories(strobe_test_own_recording SYSTEM PRIVATE ${STROBE_NVTX_INCLUDE})
  target_link_libraries(strobe_test_own_recording PRIVATE strobe_record ${CMAKE_DL_LIBS})
else()
  message(STATUS "tests: NVTX's C interface is left out (the wheel nvidia-nvtx was not found)")
endif()
add_executable(strobe_test_itt_calls ${CMAKE_CURRENT_LIST_DIR}/itt_calls.cc)
target_include_directories(strobe_test_itt_calls PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(strobe_test_itt_calls PRIVATE ${CMAKE_DL_LIBS})
strobe_warnings(strobe_test_itt_calls)
