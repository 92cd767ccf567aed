# SPDX-License-Identifier: Apache-2.0
. Tests/Fuzz/media-chain.sh
. Tests/Fuzz/y4m.sh
. Tests/Fuzz/motion.sh

# The fuzz targets, for the scripts beside this one. Calls `target NAME MOST_BYTES SOURCE…` for each; its seeds are Tests/Fixtures/fuzz/NAME.
sink=Sources/Plugins/RTSPSink

targets() {
  # Of several modules, which `compile` leaves to their own scripts. The longest to build comes first.
  target media-chain 6000
  target json-reader 4096 Tests/Fuzz/JSONReaderFuzz.swift Sources/Core/JSON/*.swift Sources/Core/Errors/*.swift Sources/Core/Media/MediaTime.swift Sources/Core/Support/{PrintableText,SecondsText}.swift
  target rtsp-wire 400 Tests/Fuzz/{RTSPWireFuzz,Numbers}.swift $sink/{Protocol,Access,Session}/*.swift $sink/RTP/*.swift
  target rtsp-tunnel 400 Tests/Fuzz/RTSPTunnelFuzz.swift $sink/{Protocol,Access}/*.swift
  target rtsp-dialogue 96 Tests/Fuzz/{RTSPDialogueFuzz,Numbers}.swift $sink/{Protocol,Access,Session}/*.swift
  target rtsp-headers 200 Tests/Fuzz/RTSPHeadersFuzz.swift $sink/{Protocol,Access}/*.swift
  target rtcp 400 Tests/Fuzz/RTCPFuzz.swift $sink/RTP/*.swift
  target y4m 4200
  target motion 2000
}

# compile OUT FLAG… -- SOURCE…
compile() {
  local out=$1 flags=()
  shift
  while [[ $1 != -- ]]; do flags+=("$1"); shift; done
  if [[ $# == 1 ]]; then
    local name=${out##*/}
    "compile_${name//-/_}" "$out" "${flags[@]}"
    return
  fi
  shift
  swiftc -O -swift-version 6 -use-ld=lld -parse-as-library -I $sink/Shims/CNettle "${flags[@]}" "$@" -module-name FuzzTarget -o "$out"
}
