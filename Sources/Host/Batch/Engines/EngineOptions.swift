// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options for the cluster that runs a batch.
struct EngineOptions: ParsableArguments {
    @ArgumentParser.Option(
        parsing: .unconditional, help: "Number of tasks that share the files. Default: one per file, at most 200.",
        transform: NumberOption.whole(1...1_000_000))
    var tasks: Int?

    @ArgumentParser.Option(
        name: .customLong("tasks-at-once"), parsing: .unconditional,
        help: "Maximum number of tasks to run at once. Default: as many as the cluster has room for.",
        transform: NumberOption.whole(1...1_000_000))
    var tasksAtOnce: Int?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: "Cores for each task. Default: the number of busy threads in the chain's plan, times --jobs.",
        transform: NumberOption.whole(1...1024))
    var cores: Int?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Memory for each task. Default: what the chain's plan needs, times --jobs, plus a reserve.",
            valueName: "MiB"),
        transform: NumberOption.whole(1...(1 << 30)))
    var memory: Int?

    @ArgumentParser.Option(
        help: ArgumentHelp("The container image, for Kubernetes. Default: framehost:latest.", valueName: "name"))
    var image: String?

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "A persistent volume claim and the folder where it is mounted, on this machine and in the pods, for Kubernetes. Repeatable.",
            valueName: "claim:/folder"))
    var volume: [String] = []

    func check(_ on: BatchEngine?) throws {
        let ofTasks = [("tasks", tasks), ("tasks-at-once", tasksAtOnce), ("cores", cores), ("memory", memory)]
        if on == nil, let (name, _) = ofTasks.first(where: { $0.1 != nil }) {
            throw ValidationError(
                "--\(name) is only for a cluster. Name the engine with --on, or leave --\(name) out.")
        }
        if on != .kubernetes, image != nil {
            throw ValidationError("--image is only for Kubernetes. Leave --image out, or add --on kubernetes.")
        }
        if on != .kubernetes, !volume.isEmpty {
            throw ValidationError("--volume is only for Kubernetes. Leave --volume out, or add --on kubernetes.")
        }
        if on == .kubernetes, volume.isEmpty {
            throw ValidationError(
                "--on kubernetes needs the volume that has the files. Name its claim and the folder where it is mounted, here and in the pods: --volume archive:/mnt/archive."
            )
        }
        for text in volume where KubernetesManifest.Volume(text) == nil {
            throw ValidationError(
                "--volume \(text): must be CLAIM:/FOLDER: a claim's name in lower-case letters, digits, dots and hyphens, and an absolute folder without a colon. Write for example --volume archive:/mnt/archive."
            )
        }
    }
}
