// Package beanstalk compares tarry beanstalkd with beanstalkd: the same client, over TCP on one
// machine, each server in a process of its own. In each turn every server is started anew.
package beanstalk
