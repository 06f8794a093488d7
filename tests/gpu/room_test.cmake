# NVIDIA's headers of CUPTI, which our own declarations are held against: wheels nvidia-cuda-cupti,
# nvidia-cuda-runtime (for cuda.h) and nvidia-cuda-crt, or an installed toolkit.
find_path(STROBE_CUPTI_INCLUDE cupti.h
  PATHS ${STROBE_SITE_PACKAGES}/nvidia/cu13/include /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)
find_path(STROBE_CUDA_INCLUDE cuda.h PATHS ${STROBE_SITE_PACKAGES}/nvidia/cu13/include /usr/local/cuda/include)
if(STROBE_CUPTI_INCLUDE AND STROBE_CUDA_INCLUDE AND EXISTS ${STROBE_CUDA_INCLUDE}/crt/host_defines.h)
  foreach(abi_test abi_test.cc metrics_abi_test.cc replay_abi_test.cc)
    set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/${abi_test} APPEND PROPERTY
      COMPILE_DEFINITIONS STROBE_HAVE_CUPTI_HEADERS)
    set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/${abi_test} APPEND PROPERTY
      COMPILE_OPTIONS -isystem ${STROBE_CUPTI_INCLUDE} -isystem ${STROBE_CUDA_INCLUDE} -Wno-pedantic)
  endforeach()
endif()
# The true library, which knows all chips without a driver.
find_file(STROBE_CUPTI_WHEEL_LIBRARY libcupti.so.13
  PATHS ${STROBE_SITE_PACKAGES}/nvidia/cu13/lib /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 NO_DEFAULT_PATH)
if(STROBE_CUPTI_WHEEL_LIBRARY)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/metrics_test.cc ${CMAKE_CURRENT_LIST_DIR}/replay_test.cc APPEND PROPERTY
    COMPILE_DEFINITIONS STROBE_CUPTI_WHEEL_LIBRARY="${STROBE_CUPTI_WHEEL_LIBRARY}")
endif()
# NVML's header comes with a toolkit, or with the wheel nvidia-nvml-dev.
find_path(STROBE_NVML_INCLUDE nvml.h PATHS /usr/local/cuda/include ${STROBE_SITE_PACKAGES}/nvidia/cu13/include)
if(STROBE_NVML_INCLUDE)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/nvml_abi_test.cc APPEND PROPERTY COMPILE_DEFINITIONS STROBE_HAVE_NVML_HEADER)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/nvml_abi_test.cc APPEND PROPERTY
    COMPILE_OPTIONS -isystem ${STROBE_NVML_INCLUDE} -Wno-pedantic -Wno-deprecated-declarations)
endif()
target_link_libraries(strobe_gpu_test PRIVATE strobe_gpu_timeline)

# The stand-in for NVIDIA's libraries, whole and without what CUPTI may lack.
foreach(fake strobe_fake_gpu strobe_fake_gpu_old)
  add_library(${fake} MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_gpu.cc
    ${CMAKE_CURRENT_LIST_DIR}/fake_metrics.cc ${CMAKE_CURRENT_LIST_DIR}/fake_replay.cc)
  target_include_directories(${fake} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${fake} PRIVATE ${CMAKE_DL_LIBS})
  strobe_warnings(${fake})
  add_dependencies(strobe_gpu_test ${fake})
endforeach()
target_compile_definitions(strobe_fake_gpu_old PRIVATE FAKE_WITHOUT_OPTIONAL)
foreach(fake strobe_fake_nvml strobe_fake_nvml_old)
  add_library(${fake} MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_nvml.cc)
  target_include_directories(${fake} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  strobe_warnings(${fake})
  add_dependencies(strobe_gpu_test ${fake})
endforeach()
target_compile_definitions(strobe_fake_nvml_old PRIVATE FAKE_WITHOUT_OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/record_gpu.cmake OPTIONAL)
