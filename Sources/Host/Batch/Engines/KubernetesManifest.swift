// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A batch as two Jobs for Kubernetes: an Indexed one whose pods are shards, and one for the report. Pure.
///
/// The report's pod is one more batch over the whole list. It waits for files that others have, so the two Jobs
/// need no order.
///
/// - SeeAlso: Kubernetes, Job (batch/v1): `backoffLimitPerIndex` since 1.33, `podFailurePolicy` since 1.31.
struct KubernetesManifest {
    let job: BatchJob
    let image: String
    /// Claims of persistent volumes, and the folders where pods see them: `archive` at `/mnt/archive`.
    let volumes: [Volume]

    struct Volume: Equatable, Sendable {
        var claim: String
        var path: String

        /// `CLAIM:/FOLDER`; nil for any other text.
        init?(_ text: String) {
            guard let colon = text.firstIndex(of: ":") else { return nil }
            claim = String(text[..<colon])
            path = String(text[text.index(after: colon)...])
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            let isName =
                !claim.isEmpty && claim.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyz0123456789-.".utf8.contains($0) }
            // Kubernetes refuses a colon in mountPath.
            guard isName, path.hasPrefix("/"), path.count > 1, !path.contains(":") else { return nil }
        }

        /// Whether a file lies in it.
        func holds(_ file: String) -> Bool { file == path || file.hasPrefix(path + "/") }
    }

    var text: String {
        // Kubernetes counts from 0.
        let shard = "exec \"$@\" --shard \"$((JOB_COMPLETION_INDEX + 1))/\(job.tasks)\""
        let indexed = """
              completionMode: Indexed
              completions: \(job.tasks)
              parallelism: \(job.tasksAtOnce ?? job.tasks)
              backoffLimitPerIndex: 3

            """
        let tasks = manifest(
            name: job.name, more: indexed, ruleFor2: "FailIndex",
            command: ["/bin/sh", "-c", shard, "sh", job.program] + job.arguments + job.taskArguments)
        let report = manifest(
            name: "\(job.name)-report", more: "  backoffLimit: 3\n", ruleFor2: "FailJob",
            command: [job.program] + job.arguments + job.reportArguments)
        return "# Written by framehost batch --on kubernetes. Start it with: kubectl create -f FILE\n\(tasks)---\n"
            + "# One more batch over the whole list, which waits for the others' files and writes the report.\n\(report)"
    }

    private func manifest(name: String, more: String, ruleFor2: String, command: [String]) -> String {
        let environment = job.variables.map {
            "            - { name: \(Self.quoted($0.name)), value: \(Self.quoted(Self.unexpanded($0.value))) }\n"
        }.joined()
        let mounts = volumes.indices.map {
            "            - { name: volume-\($0), mountPath: \(Self.quoted(volumes[$0].path)) }\n"
        }.joined()
        let claims = volumes.indices.map {
            "        - { name: volume-\($0), persistentVolumeClaim: { claimName: \(Self.quoted(volumes[$0].claim)) } }\n"
        }.joined()
        let words = command.map { "            - \(Self.quoted(Self.unexpanded($0)))\n" }.joined()
        let size = "cpu: \(job.cores), memory: \(job.memoryMiB)Mi"
        return """
            apiVersion: batch/v1
            kind: Job
            metadata:
              name: \(Self.quoted(name))
              labels: { app.kubernetes.io/name: framehost }
            spec:
            \(more)  # A new pod begins when the old one has ended.
              podReplacementPolicy: Failed
              podFailurePolicy:
                rules:
                # The chain or the command line is wrong: another try would end the same way.
                - action: \(ruleFor2)
                  onExitCodes: { containerName: framehost, operator: In, values: [2] }
                # The node went away or was needed: that costs no try.
                - action: Ignore
                  onPodConditions: [{ type: DisruptionTarget, status: "True" }]
              template:
                spec:
                  restartPolicy: Never
                  terminationGracePeriodSeconds: 30
                  containers:
                  - name: framehost
                    image: \(Self.quoted(image))
                    workingDir: \(Self.quoted(job.current))
                    command:
            \(words)\(environment.isEmpty ? "" : "        env:\n" + environment)        resources:
                      requests: { \(size) }
                      limits: { memory: \(job.memoryMiB)Mi }
                    volumeMounts:
            \(mounts)      volumes:
            \(claims)
            """
    }

    /// Kubernetes reads `$(NAME)` in commands and variables; two dollar signs are one.
    private static func unexpanded(_ text: String) -> String {
        text.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$")
    }

    /// A JSON string is also a YAML string.
    private static func quoted(_ text: String) -> String { JSONNode.string(text).text() }
}
