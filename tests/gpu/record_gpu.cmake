# What `strobe record` is tested with: a program that uses the stand-in as others use the driver.
add_executable(strobe_test_gpu_program ${CMAKE_CURRENT_LIST_DIR}/gpu_program.cc)
target_include_directories(strobe_test_gpu_program PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(strobe_test_gpu_program PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
strobe_warnings(strobe_test_gpu_program)
find_path(STROBE_NVTX_INCLUDE nvtx3/nvToolsExtCounters.h
  PATHS ${STROBE_SITE_PACKAGES}/nvidia/cu13/include ${STROBE_SITE_PACKAGES}/nvidia/nvtx/include)
if(STROBE_NVTX_INCLUDE)
  target_include_directories(strobe_test_gpu_program SYSTEM PRIVATE ${STROBE_NVTX_INCLUDE})
  target_compile_definitions(strobe_test_gpu_program PRIVATE STROBE_HAVE_NVTX)
endif()

# One that records itself, and an engine whose inferences use the stand-in, for `strobe run`.
add_executable(strobe_test_annotated_gpu_program ${CMAKE_CURRENT_LIST_DIR}/annotated_gpu_program.c)
target_include_directories(strobe_test_annotated_gpu_program PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(strobe_test_annotated_gpu_program PRIVATE strobe_record)
add_library(strobe_test_engine_fakegpu MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_engine.cc)
target_include_directories(strobe_test_engine_fakegpu PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(strobe_test_engine_fakegpu PRIVATE strobe_engines strobe_models ${CMAKE_DL_LIBS})
set_target_properties(strobe_test_engine_fakegpu PROPERTIES OUTPUT_NAME strobe_engine_fakegpu
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/test_gpu_plugins)
strobe_warnings(strobe_test_engine_fakegpu)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET strobe AND TARGET strobe_inject)
  foreach(noun record run sample metrics profile real real_tensorrt)
    add_test(NAME gpu.${noun} COMMAND ${Python3_EXECUTABLE} -m unittest -v ${noun}_gpu
             WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    set_tests_properties(gpu.${noun} PROPERTIES TIMEOUT 600
      ENVIRONMENT "STROBE=$<TARGET_FILE:strobe>;STROBE_TEST_LIB=${CMAKE_BINARY_DIR}/lib;STROBE_TEST_BIN=${CMAKE_BINARY_DIR}/bin;STROBE_TEST_PYTHON=${STROBE_PYTHON};STROBE_TEST_NVTX=$<BOOL:${STROBE_NVTX_INCLUDE}>;PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/cli;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
  set_tests_properties(gpu.real gpu.real_tensorrt PROPERTIES TIMEOUT 1800)  # where there is a device
endif()
