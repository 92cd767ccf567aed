// SPDX-License-Identifier: Apache-2.0

/// Makes the place of an option's fault: `camera.json:7:5: stages[2].rate`.
public typealias OptionPlace = (_ key: String, _ text: TextPlace) -> FaultPlace
