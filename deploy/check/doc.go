// Package check tests what the project is deployed with: the files of Docker Compose, systemd and Kubernetes. It runs
// their commands as they stand, with the built programs in the place of images.
package check
