# SPDX-License-Identifier: Apache-2.0
. Tests/Fuzz/media-chain.sh
. Tests/Fuzz/y4m.sh
. Tests/Fuzz/motion.sh
. Tests/Fuzz/rtsp.sh
. Tests/Fuzz/onvif.sh

# How far their code is optimised; `run` says it anew.
level=-O

# The fuzz targets, for the scripts beside this one. Calls `target NAME MOST_BYTES SOURCE…` for each; its seeds are Tests/Fixtures/fuzz/NAME.
targets() {
  # Those without sources are left by `compile` to scripts of their own. The longest to build come first.
  target media-chain 6000
  target onvif 2000
  target rtsp-wire 400
  target rtsp-tunnel 400
  target rtsp-dialogue 96
  target rtsp-headers 200
  target rtcp 400
  target json-reader 4096 Tests/Fuzz/JSONReaderFuzz.swift Sources/Core/JSON/*.swift Sources/Core/Errors/*.swift Sources/Core/Media/MediaTime.swift Sources/Core/{Support/{Address,PrintableText,SecondsText,SystemCall,WrittenValues,Locked},FrameSupport/Condition}.swift
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
    case $name in
      rtsp-* | rtcp) compile_rtsp "$out" "${flags[@]}" ;;
      *) "compile_${name//-/_}" "$out" "${flags[@]}" ;;
    esac
    return
  fi
  shift
  swiftc "$level" -swift-version 6 -use-ld=lld -parse-as-library "${flags[@]}" "$@" -module-name FuzzTarget -o "$out"
}
