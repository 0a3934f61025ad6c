// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors

// Kubernetes in one program: which part of it runs is the name that it is started by. The parts share
// nearly all of their packages, so that one program is built in the time of two.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	parts := map[string]func() *cobra.Command{
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-controller-manager": controllers.NewControllerManagerCommand,
	}
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}
	part, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: not a part of Kubernetes; start it by the name of one\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(part()))
}
